"""Protobuf's types as Spark's, and the values between."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import (
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FileDescriptorSet,
    MessageOptions,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

from barnabas.spark.decoding.protobuf_types import message_type, message_value
from tests.spark.messages import F, descriptor_set, message

ENTRY = message("CountsEntry", key=(1, F.TYPE_STRING), value=(2, ".shop.Item"))
ENTRY.options.CopyFrom(MessageOptions(map_entry=True))
ORDER = message(
    "Order",
    id=(1, F.TYPE_INT32),
    big=(2, F.TYPE_UINT32),
    huge=(3, F.TYPE_UINT64),
    data=(4, F.TYPE_BYTES),
    note=(5, F.TYPE_STRING, "optional"),
    color=(6, ".shop.Color", "enum"),
    items=(7, ".shop.Item", "repeated"),
    counts=(8, ".shop.Order.CountsEntry", "repeated"),
    first=(9, ".shop.Item"),
    at=(10, ".google.protobuf.Timestamp"),
    flags=(11, F.TYPE_BOOL, "repeated"),
    price=(12, F.TYPE_DOUBLE),
)
ORDER.nested_type.append(ENTRY)
COLORS = EnumDescriptorProto(name="Color", value=[EnumValueDescriptorProto(name="RED", number=0)])
ITEM = message("Item", sku=(1, F.TYPE_STRING), weight=(2, F.TYPE_FLOAT), n=(3, F.TYPE_SFIXED64))


def order() -> Any:
    pool = DescriptorPool()
    pool.AddSerializedFile(TIMESTAMP.serialized_pb)
    made = descriptor_set(ORDER, ITEM, dependencies=(TIMESTAMP.name,), enum_type=[COLORS])
    for file in FileDescriptorSet.FromString(made).file:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_types():
    assert message_type(order().DESCRIPTOR).simpleString() == (
        "struct<id:int,big:bigint,huge:decimal(20,0),data:binary,note:string,color:string,"
        "items:array<struct<sku:string,weight:float,n:bigint>>,counts:map<string,struct<sku:string,weight:float,n:bigint>>,"
        "first:struct<sku:string,weight:float,n:bigint>,at:timestamp,flags:array<boolean>,price:double>"
    )


def test_a_message_that_contains_itself():
    pool = DescriptorPool()
    (file,) = FileDescriptorSet.FromString(descriptor_set(message("Node", next=(1, ".shop.Node")))).file
    pool.AddSerializedFile(file.SerializeToString())
    with pytest.raises(ValueError, match=r"message shop\.Node contains itself"):
        message_type(pool.FindMessageTypeByName("shop.Node"))


def test_an_empty_message_has_defaults_and_nulls():
    assert message_value(order()()) == {
        "id": 0, "big": 0, "huge": 0, "data": b"", "note": None, "color": "RED", "items": [], "counts": [],
        "first": None, "at": None, "flags": [], "price": 0.0,
    }  # fmt: skip


def test_values():
    made = order()(id=-1, huge=2**64 - 1, note="", color=7, flags=[True], first={"sku": "a"})
    made.at.FromDatetime(datetime.datetime(2026, 11, 22, 10, 0, 0, 5))
    made.items.add(sku="b", n=2**40)
    made.counts["x"].weight = 0.5
    found = message_value(made)
    assert found["at"] == datetime.datetime(2026, 11, 22, 10, 0, 0, 5, datetime.UTC)
    assert found["items"] == [{"sku": "b", "weight": 0.0, "n": 2**40}]
    assert found["counts"] == [("x", {"sku": "", "weight": 0.5, "n": 0})]
    assert (found["note"], found["color"], found["huge"], found["first"]["sku"]) == ("", "7", 2**64 - 1, "a")
