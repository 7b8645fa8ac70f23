"""Encodes Arrow columns into the bodies of record batches, with no Python object per record.

    length | 0 | timestampDelta | offsetDelta | keyLength | key | valueLength | value | headersCount | headers

(`records.record` has the layout.) numpy computes the varints of all records of a batch, column by column. Then Arrow
joins the columns row by row: the data of the joined column is the body.

Invariants:

- Records keep their order.
- A batch has at most `max_bytes` before compression, unless a single record is larger.

Source: org.apache.kafka.common.record.DefaultRecord; the reading side is `columnar`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.producer import EncodedRecords
from barnabas.records.compression import Compression, compress
from barnabas.spark.sink.digest import RowDigest, UInt64Array

Int64Array: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

# Length, attributes, deltas, key length, value length and count of headers at their longest.
_OVERHEAD_BYTES = 5 + 1 + 10 + 5 + 5 + 5 + 5
_EMPTY = pa.scalar(b"", pa.binary())
_ATTRIBUTES = pa.scalar(b"\0", pa.binary())


class RecordColumns(NamedTuple):
    """Records as columns of one length.

    Attributes:
        keys, values: binary.
        headers: list<struct<key: binary, value: binary>>, None if no record has any.
        timestamps: milliseconds since 1970.
        marks: what else a row says of itself (`digest`), None if no row says anything.
    """

    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: pa.ListArray | None
    timestamps: Int64Array
    marks: UInt64Array | None = None

    def take(self, rows: Int64Array) -> RecordColumns:
        """Return some of the records."""
        indexes = pa.array(rows)
        headers = None if self.headers is None else self.headers.take(indexes)
        marks = None if self.marks is None else self.marks[rows]
        return RecordColumns(self.keys.take(indexes), self.values.take(indexes), headers, self.timestamps[rows], marks)

    def slice(self, begin: int, end: int) -> RecordColumns:
        """Return a range of the records."""
        count = end - begin
        return RecordColumns(
            self.keys.slice(begin, count),
            self.values.slice(begin, count),
            None if self.headers is None else self.headers.slice(begin, count),
            self.timestamps[begin:end],
            None if self.marks is None else self.marks[begin:end],
        )


def encode(
    records: RecordColumns, max_bytes: int, compression: Compression, digest: RowDigest | None = None
) -> Iterator[EncodedRecords]:
    """Yield the bodies of the batches that hold the records, and add the records to the digest."""
    headers = _encoded_headers(records.headers, len(records.values))
    key_lengths, value_lengths = _lengths(records.keys), _lengths(records.values)
    sizes = np.maximum(key_lengths, 0) + np.maximum(value_lengths, 0) + _OVERHEAD_BYTES
    if headers is not None:
        sizes += _lengths(headers)
    for begin, end in _cut(sizes, max_bytes):
        part = slice(begin, end)
        yield _batch(
            records.slice(begin, end),
            key_lengths[part],
            value_lengths[part],
            None if headers is None else headers.slice(begin, end - begin),
            compression,
            digest,
        )


def _cut(sizes: Int64Array, max_bytes: int) -> Iterator[tuple[int, int]]:
    ends = np.cumsum(sizes)
    begin, before = 0, 0
    while begin < len(sizes):
        end = max(begin + 1, int(np.searchsorted(ends, before + max_bytes, side="right")))
        yield begin, end
        begin, before = end, int(ends[end - 1])


def _batch(
    records: RecordColumns,
    key_lengths: Int64Array,
    value_lengths: Int64Array,
    headers: pa.BinaryArray | None,
    compression: Compression,
    digest: RowDigest | None,
) -> EncodedRecords:
    count = len(key_lengths)
    timestamps = records.timestamps
    deltas = [varints(timestamps - timestamps[0]), varints(np.arange(count))]
    fields = [
        *deltas,
        varints(key_lengths),
        records.keys.fill_null(b"") if records.keys.null_count else records.keys,
        varints(value_lengths),
        records.values.fill_null(b"") if records.values.null_count else records.values,
    ]
    lengths = 1 + sum((_lengths(field) for field in fields), np.zeros(count, np.int64))
    if headers is None:
        tail: Any = _ATTRIBUTES  # No headers: a count of zero, which looks the same.
        lengths += 1
    else:
        tail = headers
        lengths += _lengths(headers)
    sizes = varints(lengths)
    joined = pc.binary_join_element_wise(sizes, _ATTRIBUTES, *fields, tail, _EMPTY)
    body = _bytes_of(joined)
    if digest is not None:
        ends = np.cumsum(_lengths(sizes) + lengths)
        starts = ends - lengths + 1 + _lengths(deltas[0]) + _lengths(deltas[1])
        digest.add(body, starts, ends, records.marks)
    data = compress(compression, body) if compression else body
    return EncodedRecords(data, count, int(timestamps[0]), int(timestamps.max()), int(compression))


def _encoded_headers(headers: pa.ListArray | None, rows: int) -> pa.BinaryArray | None:
    """Return each row's headers as bytes, with their count in front; None if there are none."""
    if headers is None or not len(headers.flatten()):
        return None
    entries = headers.flatten()
    names, values = entries.field("key"), entries.field("value")
    if entries.null_count or names.null_count:
        raise ValueError("a header has no key")
    encoded = pc.binary_join_element_wise(
        varints(_lengths(names)), names, varints(_lengths(values)), values.fill_null(b""), _EMPTY
    )
    ends = np.frombuffer(encoded.buffers()[1], np.int32)[encoded.offset : encoded.offset + len(encoded) + 1]
    counts = np.asarray(pc.list_value_length(headers).fill_null(0)).astype(np.int64)
    slots = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=slots[1:])
    of_rows = pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(np.ascontiguousarray(ends[slots])), encoded.buffers()[2]]
    )
    return pc.binary_join_element_wise(varints(counts), of_rows, _EMPTY)


def varints(values: Int64Array) -> pa.BinaryArray:
    """Return signed numbers as zig-zag varints."""
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    rows = len(zigzag)
    largest = int(zigzag.max(initial=0))
    offsets = np.arange(rows + 1, dtype=np.int32)
    if largest < 128:
        data = zigzag.astype(np.uint8)
    else:
        sizes = np.ones(rows, np.int32)
        for shift in range(7, max(largest.bit_length(), 1), 7):
            sizes += zigzag >> np.uint64(shift) != 0
        np.cumsum(sizes, out=offsets[1:])
        data = np.empty(offsets[-1], np.uint8)
        starts = offsets[:-1]
        for byte in range(int(sizes.max())):
            has = sizes > byte
            part = (zigzag[has] >> np.uint64(7 * byte)).astype(np.uint8) & np.uint8(127)
            data[starts[has] + byte] = part | np.where(sizes[has] > byte + 1, np.uint8(128), np.uint8(0))
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _lengths(column: pa.BinaryArray) -> Int64Array:
    """Return the length of each value, -1 for null."""
    lengths = np.diff(np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1])
    if column.null_count:
        lengths = np.where(np.asarray(column.is_null()), -1, lengths)
    return lengths.astype(np.int64)


def _bytes_of(column: pa.BinaryArray) -> memoryview:
    ends = np.frombuffer(column.buffers()[1], np.int32)
    return memoryview(column.buffers()[2])[int(ends[column.offset]) : int(ends[column.offset + len(column)])]
