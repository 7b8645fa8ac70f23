"""Columns encoded into batches are what the decoder of records finds in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer import EncodedRecords
from barnabas.records.builder import zigzag
from barnabas.records.compression import Compression
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import MAGIC, BatchHeader, assemble
from barnabas.spark.sink.encoder import RecordColumns, encode, varints

HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
BYTES = st.none() | st.binary(max_size=200)
ROW = st.tuples(
    BYTES,
    BYTES,
    st.none() | st.lists(st.tuples(st.text(max_size=90), BYTES), max_size=3),
    st.integers(-1, 2**45),
)


def columns(rows) -> RecordColumns:
    entries = [
        None if headers is None else [{"key": name.encode(), "value": value} for name, value in headers]
        for _, _, headers, _ in rows
    ]
    return RecordColumns(
        pa.array([row[0] for row in rows], pa.binary()),
        pa.array([row[1] for row in rows], pa.binary()),
        pa.array(entries, HEADERS),
        np.array([row[3] for row in rows], np.int64),
    )


def decoded(encoded: EncodedRecords) -> list[Record]:
    header = BatchHeader(
        0, 0, -1, MAGIC, 0, encoded.compression, encoded.record_count - 1, encoded.base_timestamp, encoded.max_timestamp,
        -1, -1, -1, encoded.record_count,
    )  # fmt: skip
    return list(iter_records(assemble(header, encoded.body)))


@given(st.lists(ROW, min_size=1, max_size=40), st.integers(1, 5000), st.integers(0, 3))
def test_what_goes_in_comes_out(rows, max_bytes, skipped):
    wanted = rows[skipped:]
    found = []
    for batch in encode(columns(rows).slice(skipped, len(rows)), max_bytes, Compression.NONE) if wanted else ():
        records = decoded(batch)
        assert batch.record_count == 1 or len(batch.body) <= max_bytes
        assert batch.base_timestamp == records[0].timestamp
        assert batch.max_timestamp == max(record.timestamp for record in records)
        found += records
    assert [(r.key, r.value, r.headers, r.timestamp) for r in found] == [(k, v, h or [], t) for k, v, h, t in wanted]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec(codec):
    rows = [(b"k", b"value" * 100, None, 5)] * 20
    (batch,) = encode(columns(rows), 1_000_000, codec)
    assert [record.value for record in decoded(batch)] == [b"value" * 100] * 20


def test_rows_that_are_taken_keep_their_headers():
    rows = [(b"%d" % i, b"v", [("n", b"%d" % i)] * i, i) for i in range(5)]
    (batch,) = encode(columns(rows).take(np.array([4, 0, 2])), 1_000_000, Compression.NONE)
    assert [(r.key, len(r.headers)) for r in decoded(batch)] == [(b"4", 4), (b"0", 0), (b"2", 2)]


def test_a_header_without_a_key():
    broken = columns([(b"k", b"v", None, 0)])._replace(headers=pa.array([[{"key": None, "value": b"x"}]], HEADERS))
    with pytest.raises(ValueError, match="a header has no key"):
        list(encode(broken, 1000, Compression.NONE))


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(-200, 200)))
def test_varints(values):
    found = varints(np.array(values, np.int64))
    assert found.to_pylist() == [zigzag(value) for value in values]
