"""JSON as the values of an Avro schema, and why it is not one."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from barnabas.decoding.avro_of_json import avro_of_json, written
from barnabas.decoding.plain_data import plain
from barnabas.spark.decoding.bad_value import BadValue

INNER = {"type": "record", "name": "shop.Inner", "fields": [{"name": "n", "type": "int"}]}
OTHER = {"type": "record", "name": "shop.Other", "fields": [{"name": "t", "type": "string"}]}


def field(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind, **more}]}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def there_and_back(schema: Any, value: Any) -> Any:
    names: dict[str, Any] = {}
    parsed = fastavro.parse_schema(schema, names)
    out = io.BytesIO()
    written(parsed, avro_of_json(parsed, names, value), out)
    out.seek(0)
    return plain(fastavro.schemaless_reader(out, parsed, None))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 2),
        ("double", 2),
        ("boolean", True),
        ("bytes", "AP8="),
        ({"type": "fixed", "name": "F", "size": 2}, "AP8="),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
        ({"type": "array", "items": "long"}, [1, 2]),
        ({"type": "map", "values": ["null", "string"]}, {"a": None, "b": "x"}),
        (["null", INNER], {"n": 1}),
        ([INNER, OTHER], {"t": "x"}),
        ([{"type": "array", "items": "int"}, "string", "null"], [1]),
        (["null", logical("long", "timestamp-millis")], "2026-11-28T16:00:00.125000+00:00"),
        (logical("long", "local-timestamp-micros"), "2026-11-28T16:00:00.000001"),
        (logical("int", "date"), "2026-11-28"),
        (logical("int", "time-millis"), "16:00:00.125000"),
        (logical("bytes", "decimal", precision=6, scale=2), "12.34"),
        (logical("string", "uuid"), "6f2c1f0e-3b0a-4a2e-9f55-0c2d6a3b1c11"),
    ],
    ids=str,
)
def test_what_is_decoded_is_encoded_again(kind: Any, value: Any) -> None:
    assert there_and_back(field(kind), {"f": value}) == {"f": value}


def test_other_forms() -> None:
    assert there_and_back(field(["null", "string"]), {"f": {"string": "x"}}) == {"f": "x"}
    assert there_and_back(field([INNER, OTHER]), {"f": {"shop.Inner": {"n": 1}}}) == {"f": {"n": 1}}
    assert there_and_back(field("int", default=7), {}) == {"f": 7}
    at = "2026-11-28T16:00:00+00:00"
    assert there_and_back(field(logical("long", "timestamp-millis")), {"f": "2026-11-28T16:00:00"}) == {"f": at}
    assert there_and_back(field(logical("long", "timestamp-millis")), {"f": 1795881600000}) == {"f": at}
    assert there_and_back(field(logical("bytes", "decimal", precision=6, scale=2)), {"f": 1.5}) == {"f": "1.50"}
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "inner", "type": ["null", "Tree"]}]}
    value = {"inner": {"inner": None}}
    assert there_and_back(tree, value) == value


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("int", {"g": 1}, "R has no field 'g'"),
        ("int", {}, "field 'f' of R is missing, and has no default"),
        ("int", {"f": "x"}, "f: 'x' is not a value of int"),
        ("int", {"f": True}, "f: True is not a value of int"),
        ("int", {"f": 1 << 31}, "f: 2147483648 is too large for int"),
        ("bytes", {"f": "?"}, "is not base64, the form of bytes"),
        ({"type": "fixed", "name": "F", "size": 2}, {"f": "AA=="}, "f: F has 2 bytes, not 1"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, {"f": "B"}, "f: 'B' is not a value of E"),
        (["null", "int"], {"f": "x"}, "f: 'x' is not a value of int"),
        (["int", "null"], {"f": "x"}, "f: 'x' is not a value of int"),
        (["null", "int", "string"], {"f": 1.5}, "f: 1.5 is of no branch of the union null, int, string"),
        (INNER, {"f": {"n": "x"}}, "f: n: 'x' is not a value of int"),
        (logical("int", "date"), {"f": "today"}, "f: 'today' is not a date"),
        (logical("bytes", "decimal", precision=2, scale=0), {"f": "1234"}, "it is not of the schema"),
        ("int", [1], r"\[1\] is not a value of R"),
        ("int", {"f": "x" * 99}, "f: 'x{59}… is not a value of int"),
    ],
    ids=str,
)
def test_why_not(kind: Any, value: Any, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        there_and_back(field(kind), value)
