"""Types in Iceberg's words: what pyiceberg reads and what Spark has are the same type by the same name."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, NestedField, StringType

from barnabas.spark.tables.columns import Column
from barnabas.spark.tables.iceberg_types import columns_of, type_name

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.int8(), "int"), (pa.int32(), "int"), (pa.int64(), "bigint"),
        (pa.large_string(), "string"), (pa.string(), "string"), (pa.large_binary(), "binary"),
        (pa.date32(), "date"), (pa.timestamp("us", "UTC"), "timestamp"), (pa.timestamp("us"), "timestamp_ntz"),
        (pa.list_(_HEADER), "array<struct<key: string, value: binary>>"),
        (pa.large_list(pa.int16()), "array<int>"), (pa.map_(pa.string(), pa.int64()), "map<string, bigint>"),
        (pa.decimal128(9, 2), "decimal128(9, 2)"), (pa.float64(), "double"),
    ],
)  # fmt: skip
def test_names(kind: pa.DataType, name: str) -> None:
    assert type_name(kind) == name


def test_columns_of_a_table() -> None:
    strict = NestedField(1, "id", LongType(), required=True)
    names = NestedField(2, "names", ListType(3, StringType(), element_required=False), required=False)
    assert columns_of(Schema(strict, names)) == {
        "id": Column("bigint", is_nullable=False),
        "names": Column("array<string>"),
    }
