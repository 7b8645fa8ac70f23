"""Rows as Avro: any row comes back, and a schema that does not fit is an error before the first row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from barnabas.schemas.known_schemas import KnownSchemas
from barnabas.spark.decoding.avro_decoder import avro_decoder
from barnabas.spark.decoding.avro_schemas import AvroSchema
from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.avro_encoder import avro_encoder, row_format
from barnabas.spark.encoding.schema_ids import SubjectNaming

LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int", "default": 1}],
}
ORDER = AvroSchema(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "data", "type": "bytes"},
            {"name": "lines", "type": {"type": "array", "items": LINE}},
        ],
    }
)
LINES = st.lists(st.fixed_dictionaries({"sku": st.text(max_size=5), "n": st.integers(-(2**31), 2**31 - 1)}), max_size=3)
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.none() | st.text(max_size=20),
        "kind": st.sampled_from("AB"),
        "data": st.binary(max_size=20),
        "lines": LINES,
    }
)


READ, WRITE = avro_decoder(ORDER, None), avro_encoder(ORDER)


@settings(max_examples=50)
@given(ROWS)
def test_any_row_comes_back(row):
    assert READ(WRITE(row)) == row


@pytest.mark.parametrize(
    "change",
    [{"id": None}, {"id": 2**63}, {"kind": "C"}, {"lines": [{"sku": None, "n": 1}]}, {"data": "text"}],
    ids=str,
)
def test_a_row_that_is_not_of_the_schema(change: dict[str, Any]):
    row = {"id": 1, "note": None, "kind": "A", "data": b"", "lines": [], **change}
    with pytest.raises(BadValue, match="the row is not of the schema: "):
        avro_encoder(ORDER)(row)


def test_columns_are_checked_before_the_schema_is_registered():
    given = GivenSchema(ORDER.definition, True, source=KnownSchemas("folder", {}))
    rows = t.StructType([t.StructField("id", t.StringType())])
    with pytest.raises(ValueError, match="the schema's field kind has no column"):
        row_format(rows, given, SubjectNaming("s"), (), register=True)


def test_fields_with_a_default_need_no_column():
    rows = t.StructType([t.StructField("sku", t.StringType())])
    plain = row_format(rows, GivenSchema(LINE), SubjectNaming(), (), register=False)
    assert plain.prefix == b""
    assert avro_decoder(AvroSchema(LINE), None)(plain.make()({"sku": "x"})) == {"sku": "x", "n": 1}
