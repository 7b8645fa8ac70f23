"""Encodes a struct column on executors, row by row: each row becomes bytes, or an error in its place.

    struct ──► struct<encoded: binary, error: string> ──► encoded, error

A null row stays null (the tombstone of a compacted topic). A row that does not fit the schema has an error and no bytes, and the query
continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from barnabas.spark.decoding.row_decoder import BadValue, shortened
from barnabas.spark.plain_errors import plain_errors

__all__ = ["Encoder", "RowFormat", "encode_array", "encoded_column"]

Encoder: TypeAlias = Callable[[dict[str, Any]], bytes]
"""Returns the bytes of a row, whose maps are dicts; raises BadValue."""


class RowFormat(NamedTuple):
    """How rows become bytes, once the schema is known.

    Attributes:
        prefix: in front of each row's bytes; empty if they are not framed.
        make: makes the encoder, once for each task.
    """

    prefix: bytes
    make: Callable[[], Encoder]


_RETURNED = StructType([StructField("encoded", BinaryType()), StructField("error", StringType())])


def encoded_column(column: Column, rows: RowFormat) -> Column:
    """Return the column of structs of bytes and error."""
    prefix, make = rows

    def encode_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with plain_errors():
            encoder = make()
            for batch in batches:
                yield encode_array(batch, prefix, encoder)

    # Spark reads the kind of function from its hints, which are text here.
    encode_batches.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return arrow_udf(encode_batches, _RETURNED)(column)  # type: ignore[call-overload, no-any-return]


def encode_array(rows: pa.Array, prefix: bytes, encoder: Encoder) -> pa.StructArray:
    """Encode an array of structs."""
    encoded: list[bytes | None] = []
    errors: list[str | None] = []
    for row in rows:
        found, error = _encode(row, encoder)
        encoded.append(None if found is None else prefix + found)
        errors.append(error)
    return pa.StructArray.from_arrays(
        [pa.array(encoded, pa.binary()), pa.array(errors, pa.string())], ["encoded", "error"]
    )


def _encode(row: pa.StructScalar, encoder: Encoder) -> tuple[bytes | None, str | None]:
    try:
        value = row.as_py(maps_as_pydicts="strict")
    except (KeyError, OverflowError, ValueError):
        return None, "the row has a map with a key twice, or a time outside the years 1 to 9999"
    try:
        return (None, None) if value is None else (encoder(value), None)
    except BadValue as error:
        return None, shortened(str(error))
