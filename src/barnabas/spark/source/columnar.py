"""Decodes record batches into Arrow columns, without an object per record.

A Fetch response has whole record batches. This module turns them into `pyarrow.RecordBatch`es of Spark's Kafka columns
in two steps, so that the next fetch can be sent before the slow second step:

1. `select_batches` reads only the batch headers. It returns the batches that have records of the range, and the offset
   of the next fetch.
2. `to_arrow` decodes the selected batches.

A record is a sequence of variable-length numbers, each beginning where the last one ends:

    length | attributes | timestamp delta | offset delta | key length, key | value length, value | header count, headers

Only `length` must be read one record after another, because it alone says where the next record begins (`_walk`).
Then all records are decoded in parallel, column by column: `_varints` reads one byte per record, and repeats that only
for the records whose number has a further byte. Keys and values never become Python objects: `_binary_column` declares
their bytes to be an Arrow array whose slots alternate value, gap, value, gap, and Arrow copies every other slot.

Rules:

- A batch may begin before the fetched offset, because a broker returns whole batches: rows outside the range are
  dropped.
- The next fetch begins after the batch's *last offset*. The number of records does not tell, because compaction and
  transactions leave gaps.
- A batch that the fetch limit cuts short at the end of the response is dropped; the next fetch returns the whole batch.
- Control batches have no rows.
- With `read_committed`, a batch is skipped if its producer's transaction was aborted: from the aborted transaction's
  first offset up to the marker that ends it.
- With LogAppendTime every record has the batch's timestamp.
- Lengths are checked before Arrow receives them, because Arrow trusts them.

Limits: message formats 0 and 1 (before Kafka 0.11) are rejected. Timestamps that do not fit into microseconds are
clipped. The records of one decoded piece must fit into 2 GB, because Arrow's offsets have 32 bits.

Sources: KIP-98 (record batch, aborted transactions), KIP-82 (headers); Kafka classes DefaultRecord, CompletedFetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from barnabas.records.compression import Compression, decompress
from barnabas.records.errors import CorruptRecord
from barnabas.records.record_batch import HEADER, BatchHeader, check_batch, iter_batches

Int64Array: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
ByteArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

# The rows that Spark's worker gets in one piece. Larger pieces are no faster and cost memory on both sides.
ROWS_PER_PIECE = 20_000
BYTES_PER_PIECE = 16 << 20

_BYTES_LIMIT = 2**31 - 1
_TIMESTAMP_LIMIT_MS = (2**63 - 1) // 1000
_HEADER_BYTES = HEADER.size

_HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS_TYPE,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The batches of one response that have rows of the range; `next_offset` is where the next fetch begins."""

    batches: Sequence[tuple[int, BatchHeader]]
    next_offset: int


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """Return the exact schema that Spark expects of the source's rows."""
    return pa.schema([(name, _TYPES[name]) for name in columns])


def select_batches(
    records: memoryview,
    start: int,
    end: int,
    aborted: Iterable[tuple[int, int]] = (),
    *,
    check_crcs: bool = True,
) -> Selection:
    """Select the batches of a fetched partition that have records of `start <= offset < end`.

    Args:
        records: the partition's bytes in a Fetch response.
        start: the offset that was fetched.
        end: the offset after the range.
        aborted: the response's aborted transactions as (producer id, first offset); empty for `read_uncommitted`.
        check_crcs: whether to reject a batch with a wrong checksum.

    Returns:
        The batches, and the offset after the last whole batch of the response (`start` if the response has no whole batch).

    Raises:
        RecordError: a batch is damaged, or has a message format before 2.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    dead: set[int] = set()
    chosen: list[tuple[int, BatchHeader]] = []
    next_offset = start
    for position, header in iter_batches(records):
        if header.base_offset >= end:
            return Selection(chosen, max(next_offset, end))
        next_offset = max(next_offset, header.next_offset)
        while waiting and waiting[-1][1] <= header.last_offset:
            dead.add(waiting.pop()[0])
        if header.is_control:
            dead.discard(header.producer_id)
            continue
        if (
            (header.is_transactional and header.producer_id in dead)
            or header.last_offset < start
            or not header.record_count
        ):
            continue
        if check_crcs:
            check_batch(records, position)
        chosen.append((position, header))
    return Selection(chosen, next_offset)


def to_arrow(
    records: memoryview,
    batches: Iterable[tuple[int, BatchHeader]],
    start: int,
    end: int,
    *,
    topic: str,
    partition: int,
    columns: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Decode selected batches into pieces of at most `ROWS_PER_PIECE` rows, in order of offsets.

    Args:
        columns: names; others are not decoded.

    Raises:
        CorruptRecord: the records do not fill their batch, or a length points outside its record.
    """
    schema = arrow_schema(columns)
    for piece in _pieces(records, batches):
        rows = _decode(piece, topic, partition, schema)
        low, high = np.searchsorted(piece.offsets, [start, end])
        for at in range(low, high, ROWS_PER_PIECE):
            yield rows.slice(at, min(ROWS_PER_PIECE, high - at))


class _Piece:
    """Batches decoded together: one buffer with all their records, and each record's values from its batch header."""

    def __init__(self, data: ByteArray, headers: Sequence[BatchHeader], spans: Sequence[tuple[int, int]]) -> None:
        self.data = data
        self.counts = np.array([h.record_count for h in headers], np.int64)
        starts, ends = _record_bounds(data, headers, spans)
        self.starts, self.ends = starts, ends
        # Each record begins with its attributes, one byte that is not used yet.
        self._headers = headers
        self._timestamp_deltas, position = _varints(data, starts + 1)
        offset_deltas, position = _varints(data, position)
        self.key_position = position
        self.offsets = self._per_record([h.base_offset for h in headers]) + offset_deltas
        if np.any(offset_deltas < 0) or np.any(np.diff(self.offsets) <= 0):
            raise CorruptRecord("offsets of a batch do not ascend")

    @property
    def append_time(self) -> Int64Array:
        return self._per_record([int(h.is_log_append_time) for h in self._headers])

    def timestamps(self) -> Int64Array:
        base = [h.max_timestamp if h.is_log_append_time else h.base_timestamp for h in self._headers]
        return self._per_record(base) + np.where(self.append_time == 1, 0, self._timestamp_deltas)

    def _per_record(self, per_batch: list[int]) -> Int64Array:
        return np.repeat(np.array(per_batch, np.int64), self.counts)


def _pieces(records: memoryview, batches: Iterable[tuple[int, BatchHeader]]) -> Iterator[_Piece]:
    """Group batches into pieces that are large enough. Uncompressed batches are decoded in the response's buffer."""
    raw = np.frombuffer(records, np.uint8)
    plain: list[BatchHeader] = []
    spans: list[tuple[int, int]] = []
    packed: list[BatchHeader] = []
    payloads: list[bytes | bytearray] = []
    rows = size = 0
    for position, header in batches:
        body = (position + _HEADER_BYTES, position + header.size)
        if header.compression == Compression.NONE:
            if packed:
                yield _unpacked(packed, payloads)
                packed, payloads, rows, size = [], [], 0, 0
            plain.append(header)
            spans.append(body)
            size += header.size
        else:
            if plain:
                yield _Piece(raw, plain, spans)
                plain, spans, rows, size = [], [], 0, 0
            packed.append(header)
            payloads.append(decompress(header.compression, records[body[0] : body[1]], _BYTES_LIMIT))
            size += len(payloads[-1])
        rows += header.record_count
        if size >= BYTES_PER_PIECE or rows >= ROWS_PER_PIECE:
            yield _Piece(raw, plain, spans) if plain else _unpacked(packed, payloads)
            plain, spans, packed, payloads, rows, size = [], [], [], [], 0, 0
    if plain:
        yield _Piece(raw, plain, spans)
    if packed:
        yield _unpacked(packed, payloads)


def _unpacked(headers: Sequence[BatchHeader], payloads: Sequence[bytes | bytearray]) -> _Piece:
    data = payloads[0] if len(payloads) == 1 else b"".join(payloads)
    if len(data) > _BYTES_LIMIT:
        raise CorruptRecord(f"batches at offset {headers[0].base_offset} decompress to more than 2 GB")
    ends = np.cumsum([len(payload) for payload in payloads]).tolist()
    return _Piece(np.frombuffer(data, np.uint8), headers, list(zip([0, *ends], ends, strict=False)))


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


def _varints(data: ByteArray, position: Int64Array) -> tuple[Int64Array, Int64Array]:
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


def _bytes_field(piece: _Piece, position: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Read a length and skip that many bytes; return the beginning, the length (-1 for null) and the end."""
    length, start = _varints(piece.data, position)
    end = start + np.maximum(length, 0)
    if np.any(length < -1) or np.any(end > piece.ends):
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
    return alternating.filter(pa.array(wanted))


def _decode(piece: _Piece, topic: str, partition: int, schema: pa.Schema) -> pa.RecordBatch:
    wanted = set(schema.names)
    rows = len(piece.offsets)
    made: dict[str, Callable[[], pa.Array]] = {
        "topic": lambda: pa.repeat(pa.scalar(topic), rows),
        "partition": lambda: pa.repeat(pa.scalar(partition, pa.int32()), rows),
        "offset": lambda: pa.array(piece.offsets),
        "timestamp": lambda: _timestamp_column(piece),
        "timestampType": lambda: pa.array(piece.append_time.astype(np.int32)),
    }
    found: dict[str, pa.Array] = {}
    # The bytes of a record follow each other: a field is found behind the one before.
    position = piece.key_position
    if wanted & {"key", "value", "headers"}:
        start, length, position = _bytes_field(piece, position)
        if "key" in wanted:
            found["key"] = _binary_column(piece.data, start, length)
    if wanted & {"value", "headers"}:
        start, length, position = _bytes_field(piece, position)
        if "value" in wanted:
            found["value"] = _binary_column(piece.data, start, length)
    if "headers" in wanted:
        found["headers"] = _headers_column(piece, position)
    return pa.RecordBatch.from_arrays(
        [found[name] if name in found else made[name]() for name in schema.names], schema=schema
    )


def _timestamp_column(piece: _Piece) -> pa.Array:
    timestamps = np.clip(piece.timestamps(), -_TIMESTAMP_LIMIT_MS, _TIMESTAMP_LIMIT_MS) * 1000
    return pa.array(timestamps).view(pa.timestamp("us", tz="UTC"))


def _headers_column(piece: _Piece, position: Int64Array) -> pa.Array:
    """Decode headers record by record. Records without headers get null, as in Spark's own source."""
    counts, position = _varints(piece.data, position)
    if np.any(counts < 0) or np.any(counts > piece.ends - position):
        raise CorruptRecord("a record has an impossible number of headers")
    view = piece.data.data
    keys: list[str] = []
    values: list[bytes | None] = []
    for row in np.flatnonzero(counts):
        at, limit = int(position[row]), int(piece.ends[row])
        for _ in range(int(counts[row])):
            key, at = _header_bytes(view, at, limit)
            value, at = _header_bytes(view, at, limit)
            if key is None:
                raise CorruptRecord("a header without a key")
            keys.append(key.decode("utf-8", "replace"))
            values.append(value)
    slots = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=slots[1:])
    entries = pa.StructArray.from_arrays(
        [pa.array(keys, pa.string()), pa.array(values, pa.binary())], names=["key", "value"]
    )
    none = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(slots), entries, type=_HEADERS_TYPE, mask=none)


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
