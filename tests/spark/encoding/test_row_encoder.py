"""Rows as bytes: prefixes, nulls, and errors beside them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from barnabas.spark.decoding.row_decoder import BadValue
from barnabas.spark.encoding.row_encoder import encode_array


def encoder(row: dict[str, Any]) -> bytes:
    if row["n"] == 13:
        raise BadValue("x" * 400)
    return json.dumps(row).encode()


def test_rows_nulls_and_errors():
    kind = pa.struct([("n", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    rows = pa.array([{"n": 1, "m": [("a", 1)]}, None, {"n": 13}, {"n": 2, "m": [("a", 1), ("a", 2)]}], kind)
    good, null, bad, twice = encode_array(rows, b"\0", encoder).to_pylist()
    assert good == {"encoded": b'\0{"n": 1, "m": {"a": 1}}', "error": None}
    assert null == {"encoded": None, "error": None}
    assert bad["encoded"] is None
    assert len(bad["error"]) == 300
    assert twice == {
        "encoded": None,
        "error": "the row has a map with a key twice, or a time outside the years 1 to 9999",
    }
