"""Decodes record batches into Arrow columns, without an object per record.

A Fetch response has whole record batches. This module turns them into `pyarrow.RecordBatch`es of Spark's Kafka columns
in two steps, so that the next fetch can be sent before the slow second step:

1. `select_batches` reads only the batch headers. It returns the batches that have records of the range, and the offset
   of the next fetch.
2. `to_arrow` decodes the selected batches.

The second step has two ways with the same results: `native_decoder` if the package barnabas-native is installed, else
`numpy_decoder`.

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

Limits: message formats 0 and 1 (before Kafka 0.11) are rejected. Timestamps that do not fit into microseconds are
clipped. The records of one decoded piece must fit into 2 GB, because Arrow's offsets have 32 bits.

Sources: KIP-98 (record batch, aborted transactions), KIP-82 (headers); Kafka classes DefaultRecord, CompletedFetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from barnabas.records.compression import Compression, decompress
from barnabas.records.errors import CorruptRecord
from barnabas.records.record_batch import HEADER, BatchHeader, check_batch, iter_batches
from barnabas.spark.native_library import native_library
from barnabas.spark.source import native_decoder, numpy_decoder
from barnabas.spark.source.piece import ByteArray, Piece

# The rows that Spark's worker gets in one piece. Larger pieces are no faster and cost memory on both sides.
ROWS_PER_PIECE = 20_000
BYTES_PER_PIECE = 16 << 20

_BYTES_LIMIT = 2**31 - 1
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


_Batches: TypeAlias = tuple[ByteArray, Sequence[BatchHeader], Sequence[tuple[int, int]]]
"""A buffer with the records of batches, their headers, and where each one's records are in the buffer."""


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
    native = native_library()
    for data, headers, spans in _pieces(records, batches):
        piece = Piece(data, headers, spans, topic, partition, schema)
        decoded = None if native is None else native_decoder.decode(native, piece)
        offsets, rows = decoded or numpy_decoder.decode(piece)
        low, high = np.searchsorted(offsets, [start, end])
        for at in range(low, high, ROWS_PER_PIECE):
            yield rows.slice(at, min(ROWS_PER_PIECE, high - at))


def _pieces(records: memoryview, batches: Iterable[tuple[int, BatchHeader]]) -> Iterator[_Batches]:
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
                yield raw, plain, spans
                plain, spans, rows, size = [], [], 0, 0
            packed.append(header)
            payloads.append(decompress(header.compression, records[body[0] : body[1]], _BYTES_LIMIT))
            size += len(payloads[-1])
        rows += header.record_count
        if size >= BYTES_PER_PIECE or rows >= ROWS_PER_PIECE:
            yield (raw, plain, spans) if plain else _unpacked(packed, payloads)
            plain, spans, packed, payloads, rows, size = [], [], [], [], 0, 0
    if plain:
        yield raw, plain, spans
    if packed:
        yield _unpacked(packed, payloads)


def _unpacked(headers: Sequence[BatchHeader], payloads: Sequence[bytes | bytearray]) -> _Batches:
    data = payloads[0] if len(payloads) == 1 else b"".join(payloads)
    if len(data) > _BYTES_LIMIT:
        raise CorruptRecord(f"batches at offset {headers[0].base_offset} decompress to more than 2 GB")
    ends = np.cumsum([len(payload) for payload in payloads]).tolist()
    return np.frombuffer(data, np.uint8), headers, list(zip([0, *ends], ends, strict=False))
