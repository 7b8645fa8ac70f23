"""Columns that fit a schema's fields, and columns that do not."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from barnabas.spark.encoding.fitting_columns import check_columns


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("rows", "schema"),
    [
        (t.ByteType(), t.IntegerType()),
        (t.IntegerType(), t.LongType()),
        (t.IntegerType(), t.DoubleType()),
        (t.FloatType(), t.DoubleType()),
        (t.NullType(), t.StringType()),
        (t.VarcharType(3), t.StringType()),
        (t.DecimalType(5, 2), t.DecimalType(9, 2)),
        (t.LongType(), t.DecimalType(20, 0)),
        (t.ArrayType(t.IntegerType()), t.ArrayType(t.LongType())),
        (t.MapType(t.StringType(), struct(a=t.IntegerType())), t.MapType(t.StringType(), struct(a=t.LongType()))),
    ],
    ids=str,
)
def test_fits(rows, schema):
    check_columns(struct(a=rows), struct(a=schema), lambda path: False)


@pytest.mark.parametrize(
    ("rows", "schema", "error"),
    [
        (t.LongType(), t.IntegerType(), "column a is bigint, and the schema has int: cast the column"),
        (t.LongType(), t.DoubleType(), "column a is bigint, and the schema has double"),
        (t.StringType(), t.TimestampType(), "column a is string, and the schema has timestamp"),
        (t.DecimalType(9, 3), t.DecimalType(9, 2), r"column a is decimal\(9,3\)"),
        (t.ArrayType(t.StringType()), t.StringType(), "column a is array<string>"),
        (t.ArrayType(t.StringType()), t.ArrayType(t.LongType()), r"column a\.\[\] is string"),
        (
            struct(colour=t.LongType()),
            struct(color=t.LongType()),
            r"no field for column a\.colour; did you mean color\?",
        ),
        (
            struct(b=t.LongType()),
            struct(b=t.LongType(), must=t.LongType()),
            r"the schema's field a\.must has no column",
        ),
    ],
    ids=str,
)
def test_does_not_fit(rows, schema, error):
    with pytest.raises(ValueError, match=error):
        check_columns(struct(a=rows), struct(a=schema), lambda path: path == ("a", "may"))
    check_columns(struct(), struct(a=schema), lambda path: path == ("a",))
