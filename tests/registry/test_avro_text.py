"""The text that is stored of an Avro schema: one for one schema, and fastavro reads the same out of it."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from barnabas.registry.avro_parser import parse_avro
from barnabas.registry.avro_text import avro_text


def text_of(schema: Any, *, normalize: bool = False) -> str:
    return avro_text(parse_avro(json.dumps(schema)), normalize=normalize)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, '"string"'),
        ({"logicalType": "date", "type": "int"}, '{"type":"int","logicalType":"date"}'),
        ({"items": {"type": "int"}, "type": "array"}, '{"type":"array","items":"int"}'),
        ({"values": ["null", "int"], "type": "map"}, '{"type":"map","values":["null","int"]}'),
        (
            {"size": 2, "name": "a.b.F", "type": "fixed", "aliases": ["a.b.G", "c.F"]},
            '{"type":"fixed","name":"F","namespace":"a.b","size":2,"aliases":["G","c.F"]}',
        ),
        (
            {"default": "A", "symbols": ["A"], "doc": "é", "name": "E", "type": "enum"},
            '{"type":"enum","name":"E","doc":"é","symbols":["A"],"default":"A"}',
        ),
        (
            {
                "type": "record",
                "namespace": "a",
                "name": "R",
                "fields": [
                    {"type": {"type": "record", "name": "b.S", "fields": []}, "name": "s", "order": "ascending"},
                    {"type": {"type": "record", "name": "T", "fields": []}, "name": "t", "default": {}, "doc": "d"},
                    {"type": ["null", "b.S", "T"], "name": "again", "order": "ignore", "aliases": ["x"], "own": 1},
                ],
            },
            '{"type":"record","name":"R","namespace":"a","fields":['
            '{"name":"s","type":{"type":"record","name":"S","namespace":"b","fields":[]}},'
            '{"name":"t","type":{"type":"record","name":"T","fields":[]},"doc":"d","default":{}},'
            '{"name":"again","type":["null","b.S","T"],"order":"ignore","aliases":["x"],"own":1}]}',
        ),
    ],
)
def test_the_text(schema: Any, text: str) -> None:
    assert text_of(schema) == text
    assert text_of(json.loads(text)) == text
    canonical = fastavro.schema.to_parsing_canonical_form
    assert canonical(json.loads(text)) == canonical(schema)


def test_normalized_properties_have_one_order() -> None:
    left, right = {"type": "int", "a": 1, "b": 2}, {"type": "int", "b": 2, "a": 1}
    assert text_of(left) != text_of(right)
    assert text_of(left, normalize=True) == text_of(right, normalize=True)
