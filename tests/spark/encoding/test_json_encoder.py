"""Rows as JSON, each checked by the schema."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from barnabas.spark.decoding.given_schema import GivenSchema
from barnabas.spark.decoding.json_schemas import JsonSchema
from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.json_encoder import json_encoder, row_format
from barnabas.spark.encoding.schema_ids import SubjectNaming

ANY = JsonSchema({})
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "note": {"type": ["null", "string"]},
        "place": {"type": "string"},
    },
    "required": ["id", "note"],
    "additionalProperties": False,
}


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_any_row_comes_back(row):
    assert json.loads(json_encoder(ANY)(row)) == row


def test_values_that_json_has_no_type_for():
    row = {
        "at": datetime.datetime(2026, 11, 24, 12, tzinfo=datetime.UTC),
        "day": datetime.date(2026, 11, 24),
        "data": b"\0\xff",
        "whole": Decimal("12.00"),
        "part": Decimal("12.30"),
    }
    assert json.loads(json_encoder(ANY)(row)) == {
        "at": "2026-11-24T12:00:00+00:00",
        "day": "2026-11-24",
        "data": "AP8=",
        "whole": 12,
        "part": 12.3,
    }


def test_nulls_are_left_out_unless_they_are_required():
    encode = json_encoder(JsonSchema(ORDER))
    assert json.loads(encode({"id": 1, "note": None, "place": None})) == {"id": 1, "note": None}


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"id": 0, "note": "x"}, "the row is not of the schema: id: 0 is less than the minimum of 1"),
        ({"id": None, "note": "x"}, "the row is not of the schema: id: None is not of type 'integer'"),
        ({"id": 1, "note": "x", "more": 1}, "Additional properties are not allowed"),
    ],
)
def test_a_row_that_is_not_of_the_schema(row, error):
    with pytest.raises(BadValue, match=error):
        json_encoder(JsonSchema(ORDER))(row)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_json(value):
    with pytest.raises(BadValue, match="the row is not JSON"):
        json_encoder(ANY)({"x": value})


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["id"], "the schema's field note has no column"),
        (["id", "note", "plaice"], r"the schema has no field for column plaice; did you mean place\?"),
    ],
)
def test_columns_that_do_not_fit(columns, error):
    rows = t.StructType([t.StructField(name, t.StringType()) for name in columns])
    with pytest.raises(ValueError, match=error):
        row_format(rows, GivenSchema(ORDER), SubjectNaming(), (), register=False)
