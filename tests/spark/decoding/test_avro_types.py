"""Avro's types as Spark's, and the values between."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pytest
from fastavro.schema import parse_schema

from barnabas.spark.decoding.avro_types import converter, spark_type


def parsed(schema: Any) -> tuple[Any, dict[str, Any]]:
    names: dict[str, Any] = {}
    return parse_schema(schema, names), names


def of(schema: Any) -> str:
    return spark_type(*parsed(schema)).simpleString()


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("int", "int"),
        ("long", "bigint"),
        ("bytes", "binary"),
        ({"type": "string"}, "string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "fixed", "name": "F", "size": 2}, "binary"),
        ({"type": "array", "items": "float"}, "array<float>"),
        ({"type": "map", "values": ["null", "boolean"]}, "map<string,boolean>"),
        (["null", "string"], "string"),
        (["int", "long", "null"], "bigint"),
        (["double", "float"], "double"),
        (["null"], "void"),
        (logical("int", "date"), "date"),
        (logical("long", "timestamp-millis"), "timestamp"),
        (logical("long", "local-timestamp-micros"), "timestamp_ntz"),
        (logical("long", "timestamp-nanos"), "bigint"),
        (logical("int", "time-millis"), "int"),
        (logical("string", "uuid"), "string"),
        (logical("bytes", "decimal", precision=10, scale=2), "decimal(10,2)"),
        (record("R", a="int", b=record("S", c=["null", "string"])), "struct<a:int,b:struct<c:string>>"),
        (record("R", a=record("S", c="int"), b="S"), "struct<a:struct<c:int>,b:struct<c:int>>"),
    ],
    ids=str,
)
def test_types(schema, kind):
    assert of(schema) == kind


def test_what_spark_has_no_type_for():
    with pytest.raises(ValueError, match="the union of int, string has no type of Spark"):
        of(record("R", a=["null", "int", "string"]))
    with pytest.raises(ValueError, match="record R contains itself"):
        of(record("R", next=["null", "R"]))


@pytest.mark.parametrize(
    ("schema", "value", "converted"),
    [
        (logical("long", "timestamp-millis"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1000, datetime.UTC)),
        (logical("long", "timestamp-micros"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.UTC)),
        (logical("long", "local-timestamp-millis"), 1, datetime.datetime(1970, 1, 1, 0, 0, 0, 1000)),
        (logical("int", "date"), 1, datetime.date(1970, 1, 2)),
        (logical("int", "date"), datetime.date(1970, 1, 2), datetime.date(1970, 1, 2)),
        (logical("int", "time-millis"), datetime.time(0, 1, 2, 3_000), 62_003),
        (logical("long", "time-micros"), 7, 7),
        (logical("bytes", "decimal", precision=4, scale=2), Decimal("1.25"), Decimal("1.25")),
        (logical("bytes", "decimal", precision=4, scale=2), b"\xff", Decimal("-0.01")),
        (logical("bytes", "decimal", precision=4, scale=2), "\u00ff", Decimal("-0.01")),
        (logical("string", "uuid"), uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (["null", logical("int", "date")], None, None),
        ({"type": "map", "values": "int"}, {"a": 1}, [("a", 1)]),
        ({"type": "array", "items": logical("int", "date")}, [0], [datetime.date(1970, 1, 1)]),
        (record("R", a="int", d=logical("int", "date")), {"a": 1, "d": 0}, {"a": 1, "d": datetime.date(1970, 1, 1)}),
    ],
    ids=str,
)
def test_values(schema, value, converted):
    convert = converter(*parsed(schema))
    assert convert is not None
    assert convert(value) == converted


def test_values_that_are_the_same_are_not_touched():
    assert converter(*parsed(record("R", a="int", b={"type": "array", "items": ["null", "string"]}))) is None
