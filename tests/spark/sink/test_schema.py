"""Columns that the sink takes, and those it does not."""

from __future__ import annotations

import pytest

from barnabas.spark.sink.schema import check_schema

HEADERS = "array<struct<key:string,value:binary>>"


def test_all_columns():
    check_schema({"value": "string"}, "t")
    columns = {"value": "binary", "Key": "string", "headers": HEADERS, "topic": "string", "partition": "int"}
    check_schema({**columns, "timestamp": "timestamp", "offset": "bigint"}, None)
    check_schema({"value": "varchar(10)", "key": "void"}, "t")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": "string", "topic": "string"}, "Required attribute 'value' not found"),
        ({"value": "string"}, "topic option required when no 'topic' attribute is present"),
        ({"value": "int", "topic": "string"}, "value attribute type must be string or binary, not int"),
        ({"value": "string", "topic": "binary"}, "topic attribute type must be string, not binary"),
        ({"value": "string", "topic": "string", "partition": "bigint"}, "partition attribute type must be int"),
        (
            {"value": "string", "topic": "string", "headers": "map<string,binary>"},
            "headers attribute type must be array",
        ),
    ],
)
def test_refusals(columns, message):
    with pytest.raises(ValueError, match=message):
        check_schema(columns, None)
