"""Values made up for JSON Schema and Avro."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from barnabas.cli.generated_values import ORDERS, maker

NOW = 1_733_000_000_123


def made(schema: Any, count: int = 200) -> list[Any]:
    make = maker(schema)
    luck = random.Random(1)
    return [make(luck, NOW) for _ in range(count)]


def test_orders_are_the_same_for_the_same_seed() -> None:
    first = made(ORDERS)
    assert first == made(ORDERS)
    assert first[0]["at"] == "2024-11-30T20:53:20.123Z"
    assert {order["qty"] for order in first} == set(range(1, 10))
    assert len({order["order"] for order in first}) == 200
    json.dumps(first)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"const": 3}, {3}),
        ({"type": "boolean"}, {True, False}),
        ("null", {None}),
        (["null", "boolean"], {None, True, False}),
        ({"type": ["null", "boolean"]}, {None, True, False}),
        ({"anyOf": [{"const": 1}, {"enum": ["a"]}]}, {1, "a"}),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, {"A", "B"}),
        ({"type": "integer", "minimum": 3, "maximum": 4}, {3, 4}),
        ({"type": "long", "logicalType": "timestamp-millis"}, {NOW}),
        ({"type": "long", "logicalType": "timestamp-micros"}, {NOW * 1000}),
        ({"type": "int", "logicalType": "date"}, {NOW // 86_400_000}),
        ({"type": {"type": "string", "format": "date"}}, {"2024-11-30"}),
    ],
)
def test_simple_types(schema: Any, values: set[Any]) -> None:
    assert set(made(schema)) == values


def test_types_within_others() -> None:
    record = {
        "type": "record", "name": "r",
        "fields": [
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "counts", "type": {"type": "map", "values": "int"}},
            {"name": "inner", "type": {"type": "record", "name": "i", "fields": [{"name": "x", "type": "double"}]}},
        ],
    }  # fmt: skip
    found = made(record)
    assert all(set(each) == {"tags", "counts", "inner"} and isinstance(each["inner"]["x"], float) for each in found)
    assert {len(each["tags"]) for each in found} == {0, 1, 2, 3}
    assert all(isinstance(count, int) for each in found for count in each["counts"].values())


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (3, "3 is not a schema"),
        ({"type": "decimal"}, "type decimal"),
        ({"$ref": "#/x"}, "type None"),
        ({"enum": []}, "an enum of the schema has no values"),
        ([], "a union of the schema has no types"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "no number is at least 5"),
    ],
)
def test_schemas_without_values(schema: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("$", r"\$")):
        maker(schema)
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(30):
        nested = {"type": "array", "items": nested}
    with pytest.raises(ValueError, match="too deep"):
        maker(nested)
