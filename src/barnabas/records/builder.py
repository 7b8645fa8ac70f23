"""Builds a record batch v2 from records, for tools, coordinators and tests.

The layout is drawn in `record_batch` and `record`. Offsets inside the batch are consecutive from `base_offset`; the first
record's timestamp is the base timestamp, as in the Java producer.

Source: org.apache.kafka.common.record.MemoryRecordsBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.records.checksum import Buffer
from barnabas.records.compression import Compression, compress
from barnabas.records.record_batch import (
    CONTROL,
    LOG_APPEND_TIME,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    assemble,
)

RecordFields = tuple[int, Buffer | None, Buffer | None, Sequence[tuple[str, Buffer | None]]]
"""(timestamp in epoch milliseconds, key, value, headers)"""

_ONE_BYTE = [bytes((value,)) for value in range(128)]


def zigzag(value: int) -> bytes:
    """Encode a signed integer as a zig-zag varint."""
    value = value << 1 if value >= 0 else (~value << 1) | 1
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Sequence[tuple[str, Buffer | None]] = (),
) -> bytes:
    """Encode one record with its length in front."""
    parts: list[Buffer] = [b"\0", zigzag(timestamp_delta), zigzag(offset_delta)]
    parts += (b"\x01",) if key is None else (zigzag(len(key)), key)
    parts += (b"\x01",) if value is None else (zigzag(len(value)), value)
    parts.append(zigzag(len(headers)))
    for name, header_value in headers:
        encoded = name.encode()
        parts += (zigzag(len(encoded)), encoded)
        parts += (b"\x01",) if header_value is None else (zigzag(len(header_value)), header_value)
    body = b"".join(parts)
    return zigzag(len(body)) + body


def build_batch(
    records: Iterable[RecordFields],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: int = Compression.NONE,
    level: int | None = None,
    log_append_time: bool = False,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Build one batch.

    Args:
        records: (timestamp, key, value, headers) each; at least one.
        level: compression level on the codec's own scale, None for its default.
        log_append_time: readers take the largest timestamp as the timestamp of every record.

    Raises:
        ValueError: no records.
    """
    parts: list[bytes] = []
    base_timestamp = max_timestamp = NO_TIMESTAMP
    for offset_delta, (timestamp, key, value, headers) in enumerate(records):
        if not offset_delta:
            base_timestamp = max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        parts.append(encode_record(offset_delta, timestamp - base_timestamp, key, value, headers))
    if not parts:
        raise ValueError("a record batch needs at least one record")
    body = b"".join(parts)
    if compression:
        body = compress(compression, body, level)
    attributes = (
        compression
        | (LOG_APPEND_TIME if log_append_time else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
    )
    last = len(parts) - 1
    header = BatchHeader(
        base_offset, 0, leader_epoch, MAGIC, 0, attributes, last, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, len(parts),
    )  # fmt: skip
    return assemble(header, body)
