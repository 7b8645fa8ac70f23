"""Rows become values, and bad rows errors beside them."""

from __future__ import annotations

import pyarrow as pa

from barnabas.spark.decoding.row_decoder import BadValue, decode_array


def number(value: bytes) -> int:
    if not value.isdigit():
        if value == b"date":
            raise OverflowError("date value out of range")
        raise BadValue(f"{value.decode()} is not a number" + "." * 400 * (value == b"long"))
    return int(value)


def rows(*values: bytes | None) -> list[tuple[int | None, str | None]]:
    found = decode_array(pa.array(values, pa.binary()), pa.int32(), number).to_pylist()
    return [(each["decoded"], each["error"]) for each in found]


def test_values_nulls_and_errors():
    assert rows(b"1", None, b"x", b"2") == [(1, None), (None, None), (None, "x is not a number"), (2, None)]
    assert rows() == []


def test_a_value_that_does_not_fit_its_column_is_one_bad_row():
    first, second, third = rows(b"1", b"99999999999", b"3")
    assert (first, third) == ((1, None), (3, None))
    assert second[0] is None
    assert second[1] is not None
    assert second[1].startswith("a value does not fit its column: ")


def test_a_date_that_python_does_not_have_is_a_bad_row():
    assert rows(b"1", b"date") == [(1, None), (None, "the value has a date or a number that Spark has no value for")]


def test_an_error_is_short():
    ((_, error),) = rows(b"long")
    assert error is not None
    assert len(error) == 300
    assert error.endswith("…")
