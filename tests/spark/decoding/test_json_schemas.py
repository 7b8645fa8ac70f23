"""JSON Schemas as types of Spark."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.spark.decoding.json_schemas import JsonSchema, json_schema_type, validator


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "$defs": {"word": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": ["null", "number"]}, "double"),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, "boolean"),
        ({"enum": ["a", "b"]}, "string"),
        ({"const": "a"}, "string"),
        ({"$ref": "#/$defs/word"}, "string"),
        ({"$ref": "http://h/money"}, "struct<cents:bigint>"),
        ({"type": "array", "items": {"type": "string"}}, "array<string>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"properties": {"a": {"type": "string"}}}, "struct<a:string>"),
    ],
    ids=str,
)
def test_types(schema, kind):
    money = {"type": "object", "properties": {"cents": {"type": "integer"}}}
    found = json_schema_type(JsonSchema(of(x=schema), (("http://h/money", money),)))
    assert found.simpleString() == f"struct<x:{kind}>"


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (of(x={}), "x has no type of Spark: give decode the type with schema="),
        (of(x={"oneOf": [{"type": "string"}, {"type": "integer"}]}), "x has no type of Spark"),
        (of(x=True), "x has no type of Spark"),
        (of(x={"$ref": "http://h/absent"}), "x refers to http://h/absent, which is not among the schema's references"),
        (of(x={"$ref": "#"}), "x contains itself"),
        ({"$ref": "#"}, "the schema refers to itself"),
        ({"type": "string"}, "the schema is not one of an object"),
    ],
    ids=str,
)
def test_schemas_without_a_type(schema, error):
    with pytest.raises(ValueError, match=error):
        json_schema_type(JsonSchema(schema))


def test_a_schema_that_is_not_valid():
    with pytest.raises(ValueError, match="schema 7 is not a valid JSON Schema: 'strin' is not valid"):
        validator(JsonSchema({"type": "strin"}), "schema 7")
