"""Building a record batch v2 from records. Data plane, pure; for tools, coordinators and tests.

The layout is drawn in :mod:`barnabas.records.record_batch` and :mod:`barnabas.records.record`. Offsets inside the batch
are consecutive from ``base_offset``; the first record's timestamp is the base timestamp, as in the Java producer.

Source: org.apache.kafka.common.record.MemoryRecordsBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.records.checksum import Buffer, crc32c
from barnabas.records.compression import Compression, compress
from barnabas.records.record_batch import (
    BATCH_OVERHEAD,
    CONTROL,
    CRC_START,
    HEADER,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)

RecordFields = tuple[int, Buffer | None, Buffer | None, Sequence[tuple[str, Buffer | None]]]
"""(timestamp in epoch milliseconds, key, value, headers)"""

_ONE_BYTE = [bytes((value,)) for value in range(128)]


def zigzag(value: int) -> bytes:
    """Encodes a signed integer as zig-zag varint."""
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
    """Encodes one record with its length in front."""
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
    leader_epoch: int = -1,
    compression: int = Compression.NONE,
    level: int | None = None,
    log_append_time: bool = False,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Builds one batch.

    Args:
        records: (timestamp, key, value, headers) each; at least one.
        level: compression level on the codec's own scale, None for its default.
        log_append_time: marks the largest timestamp as the time of append of every record.

    Raises:
        ValueError: no records.
    """
    parts: list[bytes] = []
    base_timestamp = max_timestamp = -1
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
    batch = bytearray(BATCH_OVERHEAD + len(body))
    batch[BATCH_OVERHEAD:] = body
    count = len(parts)
    HEADER.pack_into(
        batch, 0, base_offset, len(batch) - LOG_OVERHEAD, leader_epoch, MAGIC, 0, attributes, count - 1,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    batch[17:21] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
    return batch
