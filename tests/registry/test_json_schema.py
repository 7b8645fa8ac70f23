"""JSON schemas: which are valid, and the text that is stored."""

from __future__ import annotations

import pytest

from barnabas.registry.json_schema import InvalidJsonSchema, json_schema_text


def test_the_text_has_no_white_space_and_keeps_its_order() -> None:
    assert json_schema_text('{ "type": "object",\n "a": {} }', {}) == '{"type":"object","a":{}}'
    assert json_schema_text('{"type": "object", "a": {}}', {}, normalize=True) == '{"a":{},"type":"object"}'


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "{}",
        '{"$schema":"http://json-schema.org/draft-04/schema#","id":"here","properties":{"a":{"$ref":"#/definitions/b"}}}',
        '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"here","items":{"$ref":"here#/x"}}',
        '{"items":{"$ref":"other.json#/x"}}',
        '{"enum":[{"$ref":"a value"}]}',
    ],
)
def test_valid(text: str) -> None:
    json_schema_text(text, {"other.json": "{}"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is not JSON"),
        ("1", "an object, true or false"),
        ('{"type":"text"}', r"\$.type"),
        ('{"properties":[]}', r"\$.properties"),
        ('{"$schema":"http://json-schema.example/draft-99"}', "not a known draft"),
        ('{"items":{"$ref":"absent.json"}}', "absent.json is not one of the schema's references"),
        ('{"items":' * 20_000 + "{}" + "}" * 20_000, "nested too deeply"),
    ],
)
def test_not_valid(text: str, why: str) -> None:
    with pytest.raises(InvalidJsonSchema, match=why):
        json_schema_text(text, {"other.json": "{}"})
