"""Protobuf values by a descriptor set."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.protobuf_decoder import column, protobuf_decoder, protobuf_type
from barnabas.spark.decoding.row_decoder import BadValue
from tests.spark.messages import F, descriptor_set, message

ITEM = message("Item", sku=(1, F.TYPE_STRING))
ORDER = message("Order", id=(1, F.TYPE_INT64), item=(2, ".shop.Order.Item"))
ORDER.nested_type.append(ITEM)
SET = descriptor_set(message("Customer", name=(1, F.TYPE_STRING)), ORDER)
ID_7 = b"\x08\x07"
FRAME = b"\0\0\0\0\x11"


def test_a_message_by_name_and_the_first():
    assert protobuf_type(SET, None).simpleString() == "struct<name:string>"
    assert protobuf_type(SET, "shop.Order").simpleString() == "struct<id:bigint,item:struct<sku:string>>"
    assert protobuf_type(SET, "shop.Order.Item").simpleString() == "struct<sku:string>"


def test_values_alone():
    decode = protobuf_decoder(SET, "shop.Order", framed=False)
    assert decode(ID_7) == {"id": 7, "item": None}
    assert decode(b"") == {"id": 0, "item": None}
    with pytest.raises(BadValue, match=r"the value is not a message shop\.Order"):
        decode(b"\x08")


def test_framed_values_name_their_message():
    order, item = (protobuf_decoder(SET, f"shop.{name}", framed=True) for name in ("Order", "Order.Item"))
    assert order(FRAME + b"\x02\x02" + ID_7) == {"id": 7, "item": None}
    assert item(FRAME + b"\x04\x02\x00") == {"sku": ""}
    assert protobuf_decoder(SET, None, framed=True)(FRAME + b"\x00") == {"name": ""}
    with pytest.raises(BadValue, match=r"another message of its file than shop\.Order"):
        order(FRAME + b"\x00" + ID_7)
    with pytest.raises(BadValue, match="no schema id"):
        order(ID_7)


@pytest.mark.parametrize(
    ("descriptors", "name", "error"),
    [
        (b"", None, "is not a valid descriptor set"),
        (b"\xff\xff", None, "is not a valid descriptor set"),
        (SET, "shop.Ordr", r"has no message shop\.Ordr; did you mean shop\.Order\?"),
        (descriptor_set(), None, r"shop\.proto has no message"),
        (descriptor_set(ORDER, dependencies=("other.proto",)), None, r"has no other\.proto: .*--include_imports"),
    ],
    ids=["empty", "not one", "name", "no message", "import"],
)
def test_descriptor_sets_that_do_not_do(descriptors, name, error):
    with pytest.raises(ValueError, match=error):
        protobuf_type(descriptors, name)


def test_a_schema_that_is_not_bytes():
    with pytest.raises(ValueError, match="is a descriptor set as bytes, or the path of its file"):
        column(None, GivenSchema("message Order {}"))  # type: ignore[arg-type]


def test_the_compiled_file_is_the_last():
    first, last = FileDescriptorSet.FromString(SET), FileDescriptorSet.FromString(descriptor_set(ITEM))
    last.file[0].name = "item.proto"
    last.file[0].package = "other"
    both = FileDescriptorSet(file=[*first.file, *last.file]).SerializeToString()
    assert protobuf_type(both, None).simpleString() == "struct<sku:string>"
