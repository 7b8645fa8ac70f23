"""Writes a batch again with fewer records: what log compaction does to a batch.

    before    base offset 40, last delta 4      | k1=a | k2=b | k1=c | k3=- | k2=d |
    after     base offset 40, last delta 4      |             | k1=c | k3=- | k2=d |      the same offsets, the same last delta
    emptied   base offset 40, last delta 4      (header only, base timestamp -1, uncompressed)

Offsets, sequences, producer, leader epoch and codec stay. So does the last offset delta, which decides the next offset and the
producer's last sequence. The records that stay are copied as bytes.

Delete horizon (KIP-534): a batch that keeps a tombstone, or the marker of a transaction without records, says from when compaction may
remove it. The time is in the base timestamp, and an attribute bit says so. The records' timestamp deltas are then written again, to
keep the records' timestamps.

Sources: org.apache.kafka.common.record.MemoryRecords.filterTo, DefaultRecordBatch.writeEmptyHeader; KIP-534.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.records.builder import zigzag
from barnabas.records.checksum import Buffer
from barnabas.records.compression import Compression, compress
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import read_varint
from barnabas.records.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    assemble,
)


class RecordSpan(NamedTuple):
    """Where a record lies in the uncompressed records, and what compaction needs to know of it."""

    start: int
    """Where the record's length begins."""
    body: int
    """Where its attributes are, behind the length."""
    after_timestamp: int
    """Where its offset delta begins, behind the timestamp delta."""
    end: int
    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool


def record_spans(data: bytes | bytearray, header: BatchHeader) -> Iterator[RecordSpan]:
    """Walk uncompressed records (`records_bytes`) without decoding values and headers.

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
    """Build a batch again with some of its records.

    Args:
        header: the batch's header.
        data: its uncompressed records.
        spans: the records that stay, at least one, ascending.
        delete_horizon_ms: the horizon to set; None changes nothing.
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
    kept = header._replace(
        attributes=attributes, base_timestamp=base_timestamp, max_timestamp=max_timestamp, record_count=count
    )
    return assemble(kept, body)


def empty_batch(header: BatchHeader) -> bytearray:
    """Build the batch without its records: it keeps the offsets and the producer's last sequence."""
    attributes = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return assemble(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b"")
