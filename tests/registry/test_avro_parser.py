"""Schemas that are valid are also valid for fastavro; those that are not get a reason."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from barnabas.registry.avro_parser import InvalidAvro, parse_avro
from barnabas.registry.avro_types import Enum, Fixed, Primitive, Record, Union

NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"], "default": None}]}


def field(type_: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_, **more}]}


@pytest.mark.parametrize(
    "schema",
    [
        "int",
        {"type": "int", "logicalType": "date"},
        ["null", "string"],
        NODE,
        {
            "type": "enum",
            "name": "a.E",
            "symbols": ["A", "B"],
            "default": "A",
            "doc": "text",
            "aliases": ["Old", "b.E"],
        },
        {"type": "fixed", "name": "F", "namespace": "a.b", "size": 16},
        field({"type": "array", "items": {"type": "map", "values": "long"}}, default=[], order="ignore", aliases=["g"]),
        field(["null", "int"], default=None),
    ],
)
def test_a_valid_schema(schema: Any) -> None:
    fastavro.parse_schema(schema)
    parse_avro(json.dumps(schema))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("Missing", "type 'Missing' is not defined"),
        (7, "'7' is not a type"),
        ({"name": "x"}, "a type is missing"),
        ({"type": "record", "name": "R"}, "no list of fields"),
        ({"type": "record", "fields": []}, "a record has no name"),
        ({"type": "record", "name": "1R", "fields": []}, "is not a name"),
        ({"type": "record", "name": "int", "fields": []}, "is the name of a primitive type"),
        (field("int", name="f g"), "letters, digits and underscores"),
        ({"type": "record", "name": "R", "fields": [{"name": "f"}]}, "field f of record R has no type"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": "int"}] * 2}, "record R has field f twice"),
        (field("int", default="1"), 'default that is not valid: "1" is not of type int'),
        (field("int", order="up"), "order 'up'"),
        (["int", "int"], "a union has int twice"),
        (["int", ["string"]], "a union stands directly in a union"),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "a union has array twice"),
        ([{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 1}], "F is defined twice"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "a symbol twice"),
        ({"type": "enum", "name": "E", "symbols": ["A-B"]}, "a symbol of enum E"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, "not one of its symbols"),
        ({"type": "enum", "name": "E"}, "are not a list of texts"),
        ({"type": "fixed", "name": "F", "size": -1}, "size of fixed F"),
        ({"type": "fixed", "name": "F", "size": True}, "size of fixed F"),
        ({"type": "array"}, "array has no items"),
    ],
)
def test_a_schema_that_is_not_valid(schema: Any, why: str) -> None:
    with pytest.raises(InvalidAvro) as error:
        parse_avro(json.dumps(schema))
    assert why in str(error.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is not JSON"),
        ('{"type":"int","type":"long"}', "a name twice"),
        ('{"type":"int","x":NaN}', "NaN is not a number"),
        ('{"type":"array","items":' * 20_000 + '"int"' + "}" * 20_000, "nested too deeply"),
    ],
)
def test_a_text_that_is_no_schema(text: str, why: str) -> None:
    with pytest.raises(InvalidAvro, match=why):
        parse_avro(text)


@pytest.mark.parametrize("text", ["string", '{"type":{"type":"string"}}'])
def test_forms_that_other_libraries_write(text: str) -> None:
    parsed = parse_avro(text)
    assert isinstance(parsed, Primitive)
    assert parsed.name == "string"


def test_names_and_aliases_are_full() -> None:
    parsed = parse_avro(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "namespace": "a",
                "aliases": ["Old", "b.Old"],
                "fields": [
                    {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
                    {"name": "again", "type": "E"},
                    {"name": "f", "type": {"type": "fixed", "name": "c.F", "size": 1}},
                ],
            }
        )
    )
    assert isinstance(parsed, Record)
    assert (parsed.name, parsed.aliases) == ("a.R", ("a.Old", "b.Old"))
    enum, again, fixed = (each.type for each in parsed.fields)
    assert isinstance(enum, Enum)
    assert isinstance(fixed, Fixed)
    assert (enum.name, fixed.name, again is enum) == ("a.E", "c.F", True)


def test_a_recursive_schema_is_a_circle() -> None:
    parsed = parse_avro(json.dumps(NODE))
    assert isinstance(parsed, Record)
    union = parsed.fields[0].type
    assert isinstance(union, Union)
    assert union.branches[1] is parsed


def test_needed_schemas_give_their_names() -> None:
    parsed = parse_avro('{"type":"array","items":"a.E"}', ['{"type":"enum","name":"a.E","symbols":["A"]}'])
    assert "Array" in repr(parsed)


def test_a_stored_schema_may_have_a_wrong_default() -> None:
    parse_avro(json.dumps(field("int", default="1")), checks_defaults=False)
