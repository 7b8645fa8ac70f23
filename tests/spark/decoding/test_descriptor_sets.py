"""Compiled files from a registry; sets that a user gives are in `test_protobuf_decoder`."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.schemas.schema import PROTOBUF, Reference, Schema
from barnabas.spark.decoding.descriptor_sets import (
    descriptor_set_of,
    files_of,
    find_message,
    message_at,
    path_of,
    schema_text,
    well_known,
)
from tests.spark.messages import F, descriptor_set, message


def test_an_import_has_the_name_of_its_reference():
    money = FileDescriptorProto(
        name="default", package="shop", message_type=[message("Money", cents=(1, F.TYPE_INT32))]
    )
    paid = FileDescriptorProto(name="default", package="shop", dependency=["a/money.proto"])
    paid.message_type.append(message("Paid", due=(1, ".shop.Money")))
    known = KnownSchemas("folder", {1: Schema(schema_text(money), PROTOBUF)}, {"money": {1: 1}})
    schema = Schema(schema_text(paid), PROTOBUF, (Reference("a/money.proto", "money", 1),))
    found = descriptor_set_of(known, schema, "schema 2")
    assert [each.name for each in files_of(found)] == ["a/money.proto", "default"]
    assert find_message(found, None).full_name == "shop.Paid"
    with pytest.raises(ValueError, match="schema 3 is not a compiled file"):
        descriptor_set_of(known, Schema('syntax = "proto3";', PROTOBUF), "schema 3")


def test_places_of_messages():
    outer = message("Outer", x=(1, F.TYPE_INT32))
    outer.nested_type.append(message("Inner", y=(1, F.TYPE_INT32)))
    found = descriptor_set(message("First", z=(1, F.TYPE_INT32)), outer)
    for path in ((0,), (1,), (1, 0)):
        assert path_of(message_at(found, path)) == path
    for path in ((2,), (1, 1), (0, 0)):
        with pytest.raises(ValueError, match=r"shop\.proto has no message at \["):
            message_at(found, path)
    assert well_known("google/protobuf/any.proto")
    assert not well_known("shop.proto")
