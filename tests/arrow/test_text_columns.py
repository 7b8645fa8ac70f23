"""Keys and values as text: the same bytes, or an error that names the record."""

from __future__ import annotations

import pyarrow as pa
import pytest

from barnabas.arrow.text_columns import NotText, as_text, text_schema

SCHEMA = pa.schema([("key", pa.binary()), ("offset", pa.int64())])


def test_text_and_absent_keys():
    rows = pa.record_batch([pa.array(["né".encode(), None, b""]), pa.array([4, 5, 9])], schema=SCHEMA)
    found = as_text(rows, ["key"], "orders", 3)
    assert found.column("key").to_pylist() == ["né", None, ""]
    assert found.schema == text_schema(SCHEMA, ["key"])


def test_the_record_that_is_not_text_is_named():
    rows = pa.record_batch([pa.array([b"a", b"\xff", b"\xfe"]), pa.array([4, 7, 9])], schema=SCHEMA)
    with pytest.raises(NotText, match=r"^the key at offset 7 of orders-3 is not UTF-8$"):
        as_text(rows, ["key"], "orders", 3)
