"""Defaults, by the specification's table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.registry.avro_defaults import why_no_value
from barnabas.registry.avro_parser import parse_avro

RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 1}],
}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ("null", [None], [0, ""]),
        ("boolean", [True], [1, "true"]),
        ("int", [1, -(2**31)], [2**31, 1.0, True, "1"]),
        ("long", [2**40], [2**63, 1.5]),
        ("double", [1, 1.5], ["1", True]),
        ("bytes", ["\u00ff"], ["\u0100", 1]),
        ("string", ["text"], [1, None]),
        ({"type": "fixed", "name": "F", "size": 2}, ["ab"], ["a", "abc"]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"], ["B"]),
        ({"type": "array", "items": "int"}, [[], [1]], [{}, ["1"]]),
        ({"type": "map", "values": "int"}, [{}, {"a": 1}], [[], {"a": "1"}]),
        (["null", "int"], [None, 1], ["1"]),
        (RECORD, [{"a": 1}, {"a": 1, "b": 2}], [{}, {"a": "1"}, 1]),
    ],
)
def test_defaults(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    parsed = parse_avro(json.dumps(schema))
    assert [why_no_value(parsed, each) for each in valid] == [None] * len(valid)
    assert None not in [why_no_value(parsed, each) for each in invalid]
