"""Protobuf without a schema."""

from __future__ import annotations

import contextlib
import random

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.struct_pb2 import Struct

from barnabas.decoding.protobuf_fields import from_fields
from barnabas.spark.decoding.bad_value import BadValue


def test_fields_by_number() -> None:
    file = FileDescriptorProto(name="shop.proto", dependency=["a", "b"], public_dependency=[7])
    file.message_type.add(name="Order", field=[FieldDescriptorProto(name="id", number=300)])
    found = from_fields(file.SerializeToString())
    assert found == {"1": "shop.proto", "3": ["a", "b"], "4": {"1": "Order", "2": {"1": "id", "3": 300}}, "10": 7}


def test_numbers_and_bytes() -> None:
    struct = Struct()
    struct["x"] = 1.0
    assert from_fields(struct.SerializeToString()) == {"1": {"1": "x", "2": {"2": 0x3FF0000000000000}}}
    assert from_fields(b"\x0a\x02\xff\xfe\x15\x01\x00\x00\x00") == {"1": "//4=", "2": 1}
    assert from_fields(b"\x08" + b"\xff" * 9 + b"\x01") == {"1": 2**64 - 1}
    assert from_fields(b"") == {}


@pytest.mark.parametrize("data", [b"\x00", b"\x08", b"\x0a\x05a", b"\x0b", b"\x08" + b"\xff" * 11, b"\x0d\x01"])
def test_what_is_not_a_message(data: bytes) -> None:
    with pytest.raises(BadValue, match="it is not Protobuf"):
        from_fields(data)


def test_depth_is_bounded() -> None:
    data = b""
    for _ in range(100):
        size = len(data)
        data = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + data
    assert "1" in from_fields(data)


def test_any_bytes_are_a_message_or_none() -> None:
    dice = random.Random(7)
    for _ in range(300):
        data = dice.randbytes(dice.randrange(60))
        with contextlib.suppress(BadValue):
            assert isinstance(from_fields(data), dict)
