"""Values behind the id of a schema, by a folder of schemas and by a registry that is silent."""

from __future__ import annotations

import base64
import io
import json
import struct
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from barnabas.decoding.framed_values import SILENCE_S, FramedValues
from barnabas.schemas.errors import RegistryNotAvailable
from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.registry import SchemaRegistry
from barnabas.schemas.schema import JSON, PROTOBUF, Schema
from barnabas.schemas.settings import RegistrySettings
from barnabas.spark.decoding.bad_value import BadValue

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "raw", "type": "bytes"},
    ],
}
TREE = {
    "type": "record", "name": "Tree", "fields": [{"name": "inner", "type": ["null", "Tree"]}],
}  # fmt: skip
NULLS = {"type": "array", "items": "null"}


def file_of() -> FileDescriptorProto:
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(
        name="id", number=1, type=FieldDescriptorProto.TYPE_INT64, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    inner = order.nested_type.add(name="Line")
    inner.field.add(
        name="unit_price", number=1, type=FieldDescriptorProto.TYPE_DOUBLE, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    return file


KNOWN = KnownSchemas(
    "schemas",
    {
        1: Schema(json.dumps(ORDER)),
        2: Schema(json.dumps(TREE)),
        3: Schema(json.dumps(NULLS)),
        4: Schema(base64.b64encode(file_of().SerializeToString()).decode(), PROTOBUF),
        5: Schema('{"type": "object"}', JSON),
    },
)


def framed(schema_id: int, data: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + data


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def test_each_kind() -> None:
    values = FramedValues(KNOWN)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    data = avro(ORDER, {"id": 7, "at": at, "raw": b"\xff"})
    assert values.decode(framed(1, data)) == ("avro", {"id": 7, "at": at.isoformat(), "raw": "/w=="})
    assert values.decode(framed(5, b'{"a": 1}')) == ("json", {"a": 1})
    assert values.decode(framed(4, b"\x00\x08\x07")) == ("protobuf", {"id": "7"})
    price = struct.pack("<d", 1.5)
    assert values.decode(framed(4, b"\x04\x00\x00\x09" + price)) == ("protobuf", {"unit_price": 1.5})
    assert [values.format_of(framed(each, b"x")) for each in (1, 4, 5)] == ["avro", "protobuf", "json"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no schema id"),
        (b"\x01\x00\x00\x00\x01x", "no schema id"),
        (framed(9, b"x"), "schema 9 is not among the schemas of schemas"),
        (framed(1, b"\x0e"), r"it ends too early \(schema 1\)"),
        (framed(1, avro(ORDER, {"id": 7, "at": 0, "raw": b""}) + b"x"), "1 bytes are left"),
        (framed(1, b"\x0e" + b"\xff" * 9 + b"\x01\x00"), "it is not of its schema"),
        (framed(2, b"\x02" * 200_000 + b"\x00"), r"nested too deeply \(schema 2\)"),
        (framed(3, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"), "lists of elements without bytes"),
        (framed(4, b"\x00\xff"), "it is not a message shop.Order"),
        (framed(4, b"\x02\x0e\x08\x07"), "has no message at"),
        (framed(5, b"{"), "it is not JSON"),
    ],
)
def test_bad_and_hostile_values(data: bytes, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        FramedValues(KNOWN).decode(data)


def test_a_tree_that_is_not_too_deep() -> None:
    kind, found = FramedValues(KNOWN).decode(framed(2, b"\x02\x02\x00"))
    assert (kind, found) == ("avro", {"inner": {"inner": {"inner": None}}})


class Silent(SchemaRegistry):
    asked = 0

    def by_id(self, schema_id: int) -> Schema:
        self.asked += 1
        raise RegistryNotAvailable("http://localhost:1 does not answer")


def test_a_silent_registry_is_asked_again_later() -> None:
    now = [100.0]
    registry = Silent(RegistrySettings.of("http://localhost:1"))
    values = FramedValues(registry, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(BadValue, match="does not answer"):
            values.decode(framed(1, b"x"))
    assert registry.asked == 1
    now[0] += SILENCE_S
    with pytest.raises(BadValue, match="does not answer"):
        values.decode(framed(1, b"x"))
    assert registry.asked == 2
