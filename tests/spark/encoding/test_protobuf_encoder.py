"""Rows as messages of Protobuf: any row comes back."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from barnabas.schemas.schema import Reference
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.protobuf_decoder import protobuf_decoder
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.protobuf_encoder import protobuf_encoder, row_format
from barnabas.spark.encoding.schema_ids import SubjectNaming
from tests.spark.messages import F, descriptor_set, message

ORDER = message(
    "Order",
    id=(1, F.TYPE_INT64, "optional"),
    kind=(2, ".shop.Kind", "enum", "optional"),
    count=(3, F.TYPE_UINT64, "optional"),
    at=(4, ".google.protobuf.Timestamp"),
    lines=(5, ".shop.Line", "repeated"),
    prices=(6, ".shop.Order.PricesEntry", "repeated"),
)
ENTRY = DescriptorProto(name="PricesEntry")
ENTRY.options.map_entry = True
for number, (name, kind) in enumerate((("key", F.TYPE_STRING), ("value", F.TYPE_DOUBLE)), 1):
    ENTRY.field.append(FieldDescriptorProto(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL))
ORDER.nested_type.append(ENTRY)
KIND = EnumDescriptorProto(name="Kind")
for number, name in enumerate(("NONE", "NEW")):
    KIND.value.add(name=name, number=number)
SET = descriptor_set(
    ORDER,
    message("Line", sku=(1, F.TYPE_STRING), data=(2, F.TYPE_BYTES)),
    dependencies=("google/protobuf/timestamp.proto",),
    enum_type=[KIND],
)
TIMES = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30), timezones=st.just(datetime.UTC))
TEXT = st.text(max_size=5)
ROWS = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "kind": st.none() | st.sampled_from(["NONE", "NEW", "7"]),
        "count": st.none() | st.integers(0, 2**64 - 1).map(Decimal),
        "at": st.none() | TIMES,
        "lines": st.lists(st.fixed_dictionaries({"sku": TEXT, "data": st.binary(max_size=4)}), max_size=3),
        "prices": st.dictionaries(TEXT, st.floats(allow_nan=False), max_size=3),
    }
)
EMPTY = {"id": None, "kind": None, "count": None, "at": None, "lines": [], "prices": {}}


READ, WRITE = protobuf_decoder(SET, None, framed=False), protobuf_encoder(SET, None)


@settings(max_examples=50)
@given(ROWS)
def test_any_row_comes_back(row):
    found = READ(WRITE(row))
    assert {**found, "prices": dict(found["prices"])} == row


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "OLD"}, "kind has no value OLD"),
        ({"count": Decimal(-1)}, "the row is not a message shop.Order: "),
        ({"lines": [None]}, "lines has a null in its list"),
        ({"prices": {"a": None}}, "prices has a null in its map"),
    ],
    ids=str,
)
def test_a_row_that_is_not_of_the_schema(change, error):
    with pytest.raises(BadValue, match=error):
        protobuf_encoder(SET, None)({**EMPTY, **change})


def test_what_is_found_before_the_first_row():
    rows = t.StructType([t.StructField("idd", t.LongType())])
    with pytest.raises(ValueError, match=r"no field for column idd; did you mean id\?"):
        row_format(rows, GivenSchema(SET), SubjectNaming(), (), register=False)
    with pytest.raises(ValueError, match="references= is for formats avro and json"):
        row_format(rows, GivenSchema(SET), SubjectNaming(), (Reference("n", "s", 1),), register=False)
