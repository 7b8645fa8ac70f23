"""Decodes a column of bytes on executors, row by row: each row becomes a value, or an error beside the value.

    binary ──► struct<decoded: T, error: string> ──► decoded, error

A null (the tombstone of a compacted topic) has neither. A row whose bytes cannot be decoded has an error and no value,
and the query continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StringType, StructField, StructType

from barnabas.spark.decoding.bad_value import BadValue
from barnabas.spark.plain_errors import plain_errors

__all__ = ["BadValue", "DecodedColumn", "Decoder", "decode_array", "decoded_column", "shortened"]

Decoder: TypeAlias = Callable[[bytes], Any]
"""Returns a row's value as Arrow takes it; raises BadValue."""

_LONGEST_ERROR = 300


class DecodedColumn(NamedTuple):
    """How a column is decoded, in two steps: Spark evaluates the first one once for each row.

    Attributes:
        both: the first step, a struct.
        split: returns the value and the error of the struct.
    """

    both: Column
    split: Callable[[Column], tuple[Column, Column]]


def decoded_column(column: Column, kind: DataType, make: Callable[[], Decoder]) -> DecodedColumn:
    """Return how a column of bytes is decoded by a decoder.

    Args:
        kind: the type of the value.
        make: makes the decoder, once for each task.
    """
    returned = StructType([StructField("decoded", kind), StructField("error", StringType())])

    def decode_batches(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        with plain_errors():
            decoder = make()
            arrow_type = to_arrow_type(kind, timezone="UTC")  # of values; Spark turns them into the session's
            for batch in batches:
                yield decode_array(batch, arrow_type, decoder)

    # Spark reads the kind of function from its hints, which are text here.
    decode_batches.__annotations__ = {"batches": Iterator[pa.Array], "return": Iterator[pa.Array]}
    function = arrow_udf(decode_batches, returned)  # type: ignore[call-overload]
    return DecodedColumn(function(column), lambda both: (both["decoded"], both["error"]))


def decode_array(values: pa.Array, kind: pa.DataType, decoder: Decoder) -> pa.StructArray:
    """Decode an array of bytes into an array of structs."""
    decoded: list[Any] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        found, error = _decode(value, decoder)
        decoded.append(found)
        errors.append(error)
    try:
        column = pa.array(decoded, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # One value that does not fit its type fails the whole array.
        column = _fitting(decoded, errors, kind)
    return pa.StructArray.from_arrays([column, pa.array(errors, pa.string())], ["decoded", "error"])


def _decode(value: bytes | None, decoder: Decoder) -> tuple[Any, str | None]:
    if value is None:
        return None, None
    try:
        return decoder(value), None
    except BadValue as error:
        return None, shortened(str(error))
    except OverflowError:
        return None, "the value has a date or a number that Spark has no value for"


def _fitting(decoded: list[Any], errors: list[str | None], kind: pa.DataType) -> pa.Array:
    """Return the array of the values that fit; the others get an error."""
    for index, value in enumerate(decoded):
        try:
            pa.array([value], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            decoded[index] = None
            errors[index] = shortened(f"a value does not fit its column: {error}")
    return pa.array(decoded, kind)


def shortened(text: str) -> str:
    """Return an error's text, cut to what a column of errors should have."""
    return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"
