"""Records inside a batch, as objects: for code that needs single records. Appends and fetches do not.

A record (the fields of one batch are compressed together):

    length          varint    bytes after this field
    attributes      int8      unused
    timestampDelta  varlong   to baseTimestamp
    offsetDelta     varint    to baseOffset
    keyLength       varint    -1: null
    key             bytes
    valueLength     varint    -1: null (a tombstone in a compacted topic)
    value           bytes
    headersCount    varint
    headers         (varint length, UTF-8 name, varint length or -1, bytes) each

Varints are zig-zag coded, at most 5 bytes (10 for varlong).

Invariants checked while reading: every length stays inside its record, a record uses exactly its length, offset deltas
grow and stay within lastOffsetDelta, the count equals recordCount, no bytes are left over.

Sources: org.apache.kafka.common.record.DefaultRecord, DefaultRecordBatch.RecordIterator; KIP-82 (headers).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.records.checksum import Buffer
from barnabas.records.compression import MAX_DECOMPRESSED_BYTES, Compression, decompress
from barnabas.records.errors import InvalidRecord
from barnabas.records.record_batch import BATCH_OVERHEAD, BatchHeader, check_batch, read_header

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """One record with its absolute offset and timestamp (epoch milliseconds, -1 for none)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def iter_records(
    batch: Buffer, pos: int = 0, *, header: BatchHeader | None = None, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> Iterator[Record]:
    """Yield the records of the batch at `pos`; the CRC is not checked here.

    Args:
        batch: holds the whole batch; what follows it is ignored.
        header: the batch's header if already read.
        max_bytes: ceiling for the decompressed records.

    Raises:
        CorruptRecord: a truncated batch, or bytes that do not decompress.
        InvalidRecord: records that break the layout.
    """
    if header is None:
        header = read_header(batch, pos)
    data = records_bytes(batch, pos, header, max_bytes)
    try:
        yield from _parse(data, header)
    except (IndexError, UnicodeDecodeError) as error:
        raise InvalidRecord(f"malformed record in the batch at offset {header.base_offset}: {error}") from None


def records_bytes(
    batch: Buffer, pos: int, header: BatchHeader, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes | bytearray:
    """Return the uncompressed records of the batch at `pos`.

    Raises:
        CorruptRecord: a truncated batch, or bytes that do not decompress to at most `max_bytes`.
    """
    end = pos + header.size
    if end > len(batch) or header.size < BATCH_OVERHEAD:
        raise InvalidRecord(f"record batch of {header.size} bytes is cut off after {len(batch) - pos}")
    body = memoryview(batch)[pos + BATCH_OVERHEAD : end]
    compression = header.compression
    if compression == Compression.NONE:
        return bytes(body)
    if not len(body) and not header.record_count:  # compaction leaves it to keep a producer's last sequence
        return b""
    return decompress(compression, body, max_bytes)


def check_records(batch: Buffer, pos: int = 0, *, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> list[Record]:
    """Check a batch down to its last record: header, CRC, compression, layout, offsets.

    Raises:
        RecordError: CorruptRecord, InvalidRecord or UnsupportedRecordFormat.
    """
    header = check_batch(batch, pos)
    return list(iter_records(batch, pos, header=header, max_bytes=max_bytes))


def read_varint(data: bytes | bytearray, pos: int, max_shift: int) -> tuple[int, int]:
    """Read a varint; `max_shift` is 28 for 32 bits and 63 for 64."""
    shift = value = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > max_shift:
            raise InvalidRecord(f"varint longer than {max_shift // 7 + 1} bytes")
    if value >> (32 if max_shift == 28 else 64):
        raise InvalidRecord(f"varint exceeds {32 if max_shift == 28 else 64} bits")
    return (value >> 1) ^ -(value & 1), pos


def _parse(data: bytes | bytearray, header: BatchHeader) -> Iterator[Record]:
    # Varints of one byte are read inline: they are nearly all of them, and a call costs more than the rest.
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    last_offset_delta = header.last_offset_delta
    previous_delta = -1
    pos, end = 0, len(data)
    to_bytes = bytes
    for _ in range(header.record_count):
        byte = data[pos]
        if byte < 0x80:
            length, pos = (byte >> 1) ^ -(byte & 1), pos + 1
        else:
            length, pos = read_varint(data, pos, 28)
        record_end = pos + length
        if length < 0 or record_end > end:
            raise InvalidRecord(f"record of {length} bytes, but {end - pos} remain")
        pos += 1  # attributes
        byte = data[pos]
        if byte < 0x80:
            delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
        else:
            delta, pos = read_varint(data, pos, 63)
        timestamp = base_timestamp + delta if append_time is None else append_time
        byte = data[pos]
        if byte < 0x80:
            offset_delta, pos = (byte >> 1) ^ -(byte & 1), pos + 1
        else:
            offset_delta, pos = read_varint(data, pos, 28)
        if not previous_delta < offset_delta <= last_offset_delta:
            raise InvalidRecord(f"offset delta {offset_delta} after {previous_delta}, last is {last_offset_delta}")
        previous_delta = offset_delta
        byte = data[pos]
        if byte < 0x80:
            size, pos = (byte >> 1) ^ -(byte & 1), pos + 1
        else:
            size, pos = read_varint(data, pos, 28)
        key: bytes | None = None
        if size >= 0:
            if pos + size > record_end:
                raise InvalidRecord(f"key of {size} bytes runs over its record")
            key = to_bytes(data[pos : pos + size])
            pos += size
        byte = data[pos]
        if byte < 0x80:
            size, pos = (byte >> 1) ^ -(byte & 1), pos + 1
        else:
            size, pos = read_varint(data, pos, 28)
        value: bytes | None = None
        if size >= 0:
            if pos + size > record_end:
                raise InvalidRecord(f"value of {size} bytes runs over its record")
            value = to_bytes(data[pos : pos + size])
            pos += size
        headers: Headers = []
        if data[pos]:
            headers, pos = _parse_headers(data, pos, record_end)
        else:
            pos += 1
        if pos != record_end:
            raise InvalidRecord(f"record ends {record_end - pos} bytes after its fields")
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    if pos != end:
        raise InvalidRecord(f"{end - pos} bytes follow the last record")


def _parse_headers(data: bytes | bytearray, pos: int, end: int) -> tuple[Headers, int]:
    count, pos = read_varint(data, pos, 28)
    if not 0 <= count <= end - pos:
        raise InvalidRecord(f"{count} headers in {end - pos} bytes")
    headers: Headers = []
    for _ in range(count):
        size, pos = read_varint(data, pos, 28)
        if size < 0 or pos + size > end:
            raise InvalidRecord(f"header name of {size} bytes")
        name = bytes(data[pos : pos + size]).decode()
        pos += size
        size, pos = read_varint(data, pos, 28)
        value: bytes | None = None
        if size >= 0:
            if pos + size > end:
                raise InvalidRecord(f"header value of {size} bytes runs over its record")
            value = bytes(data[pos : pos + size])
            pos += size
        headers.append((name, value))
    return headers, pos
