"""Schemas by which a few bytes become much."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.decoding.avro_bounds import AvroBounds, bounds_of
from barnabas.spark.decoding.avro_schemas import AvroSchema, parsed_avro


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


EMPTY = record("Empty")
NOTHING = record("Nothing", a="null", b=EMPTY)
TREE = record("Tree", value="int", inner=array("Tree"))
LINK = record("Link", next=["null", "Link"])


@pytest.mark.parametrize(
    ("schema", "free", "recursive"),
    [
        ("string", False, False),
        (record("Order", id="long", notes=array("string")), False, False),
        (array("null"), True, False),
        (array(EMPTY), True, False),
        (array(NOTHING), True, False),
        (array({"type": "fixed", "name": "F", "size": 0}), True, False),
        (array(["null", "int"]), False, False),
        ({"type": "map", "values": "null"}, False, False),  # a key has bytes
        (record("Deep", first="int", then=record("Inner", x=array("null"))), True, False),
        (record("Twice", first=EMPTY, second=array("Empty")), True, False),
        (TREE, False, True),
        (LINK, False, True),
        (array({"type": "int", "logicalType": "date"}), False, False),
    ],
)
def test_bounds(schema: Any, free: bool, recursive: bool) -> None:
    parsed = parsed_avro(AvroSchema(schema), "the schema")
    assert bounds_of(parsed.schema, parsed.names) == AvroBounds(free, recursive)
