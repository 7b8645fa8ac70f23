"""Decodes the records of a piece with numpy, column by column.

A record is a sequence of variable-length numbers, each beginning where the last one ends:

    length | attributes | timestamp delta | offset delta | key length, key | value length, value | header count, headers

Only `length` must be read one record after another, because it alone says where the next record begins (`_walk`).
Then all records are decoded in parallel, column by column: `varints` reads one byte per record, and repeats that only
for the records whose number has a further byte. Keys and values never become Python objects: `_binary_column` declares
their bytes to be an Arrow array whose slots alternate value, gap, value, gap, and Arrow copies every other slot.

Lengths are checked before Arrow receives them, because Arrow trusts them. The errors of damaged records are this
module's: `native_decoder` leaves to it what it cannot decode.

Limits: as `columnar`'s.

Source: org.apache.kafka.common.record.DefaultRecord.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from barnabas.records.errors import CorruptRecord
from barnabas.records.record_batch import BatchHeader
from barnabas.spark.arrow_buffers import to_arrow, to_binary
from barnabas.spark.source.piece import TIMESTAMP_LIMIT_MS, ByteArray, Int64Array, Piece

__all__ = ["decode", "varints"]


def decode(piece: Piece) -> tuple[Int64Array, pa.RecordBatch]:
    """Return the offsets of all records, and the wanted columns.

    Raises:
        CorruptRecord: the records do not fill their batch, or a length points outside its record.
    """
    records = _Records(piece)
    wanted = set(piece.schema.names)
    found: dict[str, pa.Array] = {}
    if "offset" in wanted:
        found["offset"] = to_arrow(records.offsets)
    if "timestamp" in wanted:
        found["timestamp"] = records.timestamps()
    # The bytes of a record follow each other: a field is found behind the one before.
    position = records.key_position
    if wanted & {"key", "value", "headers"}:
        start, length, position = _bytes_field(records, position)
        if "key" in wanted:
            found["key"] = _binary_column(piece.data, start, length)
    if wanted & {"value", "headers"}:
        start, length, position = _bytes_field(records, position)
        if "value" in wanted:
            found["value"] = _binary_column(piece.data, start, length)
    if "headers" in wanted:
        found["headers"] = _headers_column(records, position, piece.schema.field("headers").type)
    return records.offsets, piece.record_batch(len(records.offsets), found)


class _Records:
    """Where the records of a piece are, and their offsets and times."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self.data = piece.data
        self.starts, self.ends = _record_bounds(piece.data, piece.headers, piece.spans)
        # Each record begins with its attributes, one byte that is not used yet.
        self._timestamp_deltas, position = varints(piece.data, self.starts + 1)
        offset_deltas, position = varints(piece.data, position)
        self.key_position = position
        self.offsets = piece.per_record([h.base_offset for h in piece.headers]) + offset_deltas
        if np.any(offset_deltas < 0) or np.any(np.diff(self.offsets) <= 0):
            raise CorruptRecord("offsets of a batch do not ascend")

    def timestamps(self) -> pa.Array:
        is_append_time = self._piece.per_record(self._piece.append_times()) == 1
        deltas = np.where(is_append_time, 0, self._timestamp_deltas)
        timestamps = self._piece.per_record(self._piece.base_timestamps()) + deltas
        in_range = np.clip(timestamps, -TIMESTAMP_LIMIT_MS, TIMESTAMP_LIMIT_MS)
        return to_arrow(in_range * 1000).view(pa.timestamp("us", tz="UTC"))


def _record_bounds(
    data: ByteArray, headers: Sequence[BatchHeader], spans: Sequence[tuple[int, int]]
) -> tuple[Int64Array, Int64Array]:
    """Return where each record of all batches begins (after its length) and ends."""
    starts: list[int] = []
    ends: list[int] = []
    view = data.data
    for header, (first, last) in zip(headers, spans, strict=True):
        try:
            reached = _walk(view, first, header.record_count, starts, ends)
        except IndexError:
            reached = -1
        if reached != last:
            raise CorruptRecord(f"records of the batch at offset {header.base_offset} do not fill it")
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _walk(view: memoryview, position: int, count: int, starts: list[int], ends: list[int]) -> int:
    """Follow the record lengths, the only sequential part. Nearly all have one or two bytes: those cases are first."""
    add_start, add_end = starts.append, ends.append
    for _ in range(count):
        low = view[position]
        if low < 128:
            position += 1
            length = low >> 1
        else:
            high = view[position + 1]
            if high < 128:
                position += 2
                length = (low & 127 | high << 7) >> 1
            else:
                length = low & 127 | (high & 127) << 7
                position += 2
                shift = 14
                while True:
                    byte = view[position]
                    position += 1
                    length |= (byte & 127) << shift
                    shift += 7
                    if byte < 128:
                        break
                    if shift > 28:
                        raise IndexError("a length of more than five bytes")
                length >>= 1
        add_start(position)
        position += length
        add_end(position)
    return position


def varints(data: ByteArray, position: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Decode a zigzag number at each position; return the numbers and the positions after them.

    Raises:
        CorruptRecord: a number runs past the end of the data or over ten bytes.
    """
    try:
        byte = data[position]
        value = (byte & 127).astype(np.uint64)
        position = position + 1
        more = np.flatnonzero(byte > 127)
        shift = 7
        while more.size:
            if shift > 63:
                raise CorruptRecord("a number of more than ten bytes")
            byte = data[position[more]]
            value[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
            position[more] += 1
            more = more[byte > 127]
            shift += 7
    except IndexError:
        raise CorruptRecord("a record runs past the end of its batch") from None
    # The lowest bit is the sign. The shift is made unsigned, so that the full 64 bits of a timestamp survive it.
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), position


def _bytes_field(records: _Records, position: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Read a length and skip that many bytes; return the beginning, the length (-1 for null) and the end."""
    length, start = varints(records.data, position)
    end = start + np.maximum(length, 0)
    if np.any(length < -1) or np.any(end > records.ends):
        raise CorruptRecord("a key or value runs past the end of its record")
    return start, length, end


def _binary_column(data: ByteArray, start: Int64Array, length: Int64Array) -> pa.Array:
    """Copy `data[start : start + length]` of every row into an Arrow array, null where the length is negative.

    The bytes are viewed as an array of twice as many slots, in which the wanted slots alternate with the gaps between
    them. A filter that drops the gaps makes Arrow copy the wanted slots.
    """
    rows = len(start)
    null = length < 0
    if rows == 0 or null.all():
        return pa.nulls(rows, pa.binary())
    slots = np.empty(2 * rows + 1, np.int32)
    slots[0:-1:2] = start
    slots[1::2] = start + np.maximum(length, 0)
    slots[-1] = slots[-2]
    validity = None
    if null.any():
        valid = np.ones(2 * rows, np.bool_)
        valid[::2] = ~null
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
    wanted = np.zeros(2 * rows, np.bool_)
    wanted[::2] = True
    alternating = pa.Array.from_buffers(pa.binary(), 2 * rows, [validity, pa.py_buffer(slots), pa.py_buffer(data)])
    return alternating.filter(to_arrow(wanted))


def _headers_column(records: _Records, position: Int64Array, kind: pa.DataType) -> pa.Array:
    """Decode headers record by record. Records without headers get null, as in Spark's own source."""
    counts, position = varints(records.data, position)
    if np.any(counts < 0) or np.any(counts > records.ends - position):
        raise CorruptRecord("a record has an impossible number of headers")
    view = records.data.data
    keys: list[bytes] = []
    values: list[bytes | None] = []
    for row in np.flatnonzero(counts):
        at, limit = int(position[row]), int(records.ends[row])
        for _ in range(int(counts[row])):
            key, at = _header_bytes(view, at, limit)
            value, at = _header_bytes(view, at, limit)
            if key is None:
                raise CorruptRecord("a header without a key")
            keys.append(key.decode("utf-8", "replace").encode())
            values.append(value)
    slots = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=slots[1:])
    entries = pa.StructArray.from_arrays([to_binary(keys, pa.string()), to_binary(values)], names=["key", "value"])
    return pa.ListArray.from_arrays(to_arrow(slots), entries, type=kind, mask=to_arrow(counts == 0))


def _header_bytes(view: memoryview, position: int, limit: int) -> tuple[bytes | None, int]:
    number = shift = 0
    while True:
        if position >= limit or shift > 28:
            raise CorruptRecord("headers run past the end of their record")
        byte = view[position]
        position += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    length = (number >> 1) ^ -(number & 1)
    if length < 0:
        return None, position
    if position + length > limit:
        raise CorruptRecord("headers run past the end of their record")
    return bytes(view[position : position + length]), position + length
