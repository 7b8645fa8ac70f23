"""Rewriting a batch with fewer records: what log compaction does to it. Data plane, pure.

    before    base offset 40, last delta 4      | k1=a | k2=b | k1=c | k3=- | k2=d |
    after     base offset 40, last delta 4      |             | k1=c | k3=- | k2=d |      the same offsets, the same last delta
    emptied   base offset 40, last delta 4      (header only, base timestamp -1, uncompressed)

Offsets, sequences, producer, leader epoch and codec stay; so does the last offset delta, which decides what offset follows and
what sequence the producer wrote last. The records that stay are copied as bytes.

Delete horizon (KIP-534): a batch that keeps a tombstone, or the marker of a transaction without records, is told until when. The time
stands in the base timestamp, said so by an attribute bit, and the records' timestamp deltas are written anew so that their timestamps
stay what they were.

Sources: org.apache.kafka.common.record.MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader; KIP-534.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.records.builder import zigzag
from barnabas.records.checksum import Buffer, crc32c
from barnabas.records.compression import Compression, compress
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import read_varint
from barnabas.records.record_batch import (
    BATCH_OVERHEAD,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
)

NO_TIMESTAMP = -1


class RecordSpan(NamedTuple):
    """Where a record lies in the uncompressed records, and what compaction asks of it."""

    start: int
    """Where its length begins."""
    body: int
    """Where its attributes byte is, behind the length."""
    after_timestamp: int
    """Where its offset delta begins, behind the timestamp delta."""
    end: int
    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool


def record_spans(data: bytes | bytearray, header: BatchHeader) -> Iterator[RecordSpan]:
    """Walks uncompressed records (`records_bytes`) without taking values and headers apart.

    Raises:
        InvalidRecord: records that break the layout.
    """
    # Varints of one and two bytes are read inline: they are nearly all of them, and a call costs more than the rest.
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    pos, total = 0, len(data)
    try:
        for _ in range(header.record_count):
            start = pos
            byte = data[pos]
            if byte < 0x80:
                length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            elif (second := data[pos + 1]) < 0x80 and not byte & 1:
                length, pos = (byte & 0x7F | second << 7) >> 1, pos + 2
            else:
                length, pos = read_varint(data, pos, 28)
            body, end = pos, pos + length
            if length < 0 or end > total:
                raise InvalidRecord(f"record of {length} bytes, but {total - pos} remain")
            pos += 1
            byte = data[pos]
            if byte < 0x80:
                delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                delta, pos = read_varint(data, pos, 63)
            after_timestamp = pos
            byte = data[pos]
            if byte < 0x80:
                offset_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            elif (second := data[pos + 1]) < 0x80 and not byte & 1:
                offset_delta, pos = (byte & 0x7F | second << 7) >> 1, pos + 2
            else:
                offset_delta, pos = read_varint(data, pos, 28)
            byte = data[pos]
            if byte < 0x80:
                size, pos = (byte >> 1) ^ -(byte & 1), pos + 1
            else:
                size, pos = read_varint(data, pos, 28)
            key: bytes | None = None
            if size >= 0:
                key = bytes(data[pos : pos + size])
                pos += size
            if pos >= end:
                raise InvalidRecord(f"key of {size} bytes runs over its record")
            # The value's length is a varint whose lowest bit is the sign: only -1, a null, has it set.
            yield RecordSpan(
                start,
                body,
                after_timestamp,
                end,
                base_offset + offset_delta,
                base_timestamp + delta if append_time is None else append_time,
                key,
                not data[pos] & 1,
            )
            pos = end
    except IndexError:
        raise InvalidRecord(f"malformed record in the batch at offset {base_offset}") from None
    if pos != total:
        raise InvalidRecord(f"{total - pos} bytes follow the last record")


def rewrite_batch(
    header: BatchHeader, data: bytes | bytearray, spans: Iterable[RecordSpan], *, delete_horizon_ms: int | None = None
) -> bytearray:
    """Builds a batch anew with some of its records.

    Args:
        header: the batch's header.
        data: its uncompressed records.
        spans: the records that stay, at least one, ascending.
        delete_horizon_ms: sets a horizon; None keeps the one it has, or none.
    """
    attributes = header.attributes
    base_timestamp = header.base_timestamp
    parts: list[Buffer] = []
    count = 0
    max_timestamp = NO_TIMESTAMP
    if delete_horizon_ms is None:
        for span in spans:
            parts.append(data[span.start : span.end])
            max_timestamp = max(max_timestamp, span.timestamp)
            count += 1
    else:
        base_timestamp = delete_horizon_ms
        attributes |= DELETE_HORIZON
        for span in spans:
            record = (
                data[span.body : span.body + 1]
                + zigzag(span.timestamp - base_timestamp)
                + data[span.after_timestamp : span.end]
            )
            parts += (zigzag(len(record)), record)
            max_timestamp = max(max_timestamp, span.timestamp)
            count += 1
    if header.is_log_append_time:
        max_timestamp = header.max_timestamp
    body = b"".join(parts)
    codec = header.compression
    if codec != Compression.NONE:
        body = compress(codec, body)
    return _batch(header, attributes, base_timestamp, max_timestamp, count, body)


def empty_batch(header: BatchHeader) -> bytearray:
    """Builds the batch without its records: it keeps offsets, and the producer's last sequence."""
    attributes = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return _batch(header, attributes, NO_TIMESTAMP, header.max_timestamp, 0, b"")


def _batch(
    header: BatchHeader, attributes: int, base_timestamp: int, max_timestamp: int, count: int, body: bytes
) -> bytearray:
    batch = bytearray(BATCH_OVERHEAD + len(body))
    batch[BATCH_OVERHEAD:] = body
    HEADER.pack_into(
        batch, 0, header.base_offset, len(batch) - LOG_OVERHEAD, header.partition_leader_epoch, MAGIC, 0, attributes,
        header.last_offset_delta, base_timestamp, max_timestamp, header.producer_id, header.producer_epoch,
        header.base_sequence, count,
    )  # fmt: skip
    batch[17:21] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
    return batch
