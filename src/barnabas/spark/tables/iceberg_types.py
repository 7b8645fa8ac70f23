"""The columns of an Iceberg table and of a query, in the same words, so that they can be compared.

Iceberg keeps fewer types than Spark: whole numbers of 8 and 16 bits become its `int`. pyiceberg reads text and bytes as Arrow's large
types, which are the same in a file.
"""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.schema import Schema

from barnabas.spark.tables.columns import Column


def columns_of(schema: Schema) -> dict[str, Column]:
    """Return a table's columns."""
    return {each.name: Column(type_name(each.type), each.nullable) for each in schema.as_arrow()}


def type_name(kind: pa.DataType) -> str:
    """Return the name of a type as Iceberg keeps it, in Spark's words where there are some."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{each.name}: {type_name(each.type)}' for each in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if pa.types.is_integer(kind):
        return "bigint" if kind.bit_width == 64 else "int"
    return _NAMES.get(kind, str(kind))


_NAMES = {
    pa.large_string(): "string",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}
