"""RecordBatch v2: its header, its checks, and the two fields a broker may change. Data plane, pure.

    offset  bytes  field
         0      8  baseOffset              set by the leader
         8      4  batchLength             bytes after this field
        12      4  partitionLeaderEpoch    set by the leader
        16      1  magic = 2
        17      4  crc                     CRC-32C of everything from attributes on
        21      2  attributes              0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon
        23      4  lastOffsetDelta         decides the next offset, even after compaction removed the last record
        27      8  baseTimestamp
        35      8  maxTimestamp
        43      8  producerId              -1: not idempotent
        51      2  producerEpoch
        53      4  baseSequence
        57      4  recordCount
        61      …  records, compressed together

The CRC begins after partitionLeaderEpoch so that a leader assigns offset and epoch without reading the records again.

Invariants:

- ``size`` = batchLength + 12 and at least 61.
- From a client, recordCount = lastOffsetDelta + 1. After compaction recordCount may be smaller, even 0.
- A batch is never split; whoever cuts a set of batches cuts between them.

Sources: org.apache.kafka.common.record.DefaultRecordBatch; LogValidator.validateBatch; KIP-98, KIP-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.records.checksum import Buffer, crc32c
from barnabas.records.compression import Compression
from barnabas.records.errors import CorruptRecord, InvalidRecord, RecordError, UnsupportedRecordFormat

__all__ = [
    "BATCH_OVERHEAD",
    "HEADER",
    "LOG_OVERHEAD",
    "BatchHeader",
    "CorruptRecord",
    "InvalidRecord",
    "RecordError",
    "UnsupportedRecordFormat",
    "check_batch",
    "check_client_batch",
    "iter_batches",
    "patch",
    "read_header",
    "set_max_timestamp_log_append",
]

HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_OVERHEAD = HEADER.size
LOG_OVERHEAD = 12
"""Bytes before batchLength begins to count."""
CRC_START = 21
MAGIC = 2

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

_int64 = struct.Struct(">q")
_int32 = struct.Struct(">i")
_uint32 = struct.Struct(">I")
_int16 = struct.Struct(">h")

assert BATCH_OVERHEAD == 61


class BatchHeader(NamedTuple):
    """The 61 bytes in front of the records, in wire order."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + 12

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """Raises InvalidRecord when the attributes name no known codec."""
        try:
            return Compression(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise InvalidRecord(f"unknown compression type id {self.attributes & COMPRESSION_MASK}") from None

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Whether base_timestamp holds the time from which tombstones may go (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def has_producer(self) -> bool:
        return self.producer_id > -1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2^31 - 1 to 0. -1 without a base sequence."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Reads the header at ``pos`` without checking anything but its presence.

    Raises:
        CorruptRecord: fewer than 61 bytes remain.
    """
    try:
        return BatchHeader._make(HEADER.unpack_from(buf, pos))
    except struct.error:
        raise CorruptRecord(f"{len(buf) - pos} bytes are too few for a record batch of at least 61") from None


def iter_batches(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of every whole batch; a truncated tail ends the iteration silently.

    Raises:
        CorruptRecord: a batch length is smaller than the header.
        UnsupportedRecordFormat: a batch of another magic.
    """
    end = len(buf)
    unpack_from = HEADER.unpack_from
    make = BatchHeader._make
    while end - pos >= BATCH_OVERHEAD:
        header = make(unpack_from(buf, pos))
        size = header[1] + LOG_OVERHEAD
        _check_size_and_magic(size, header[3])
        if size > end - pos:
            return
        yield pos, header
        pos += size


def _check_size_and_magic(size: int, magic: int) -> None:
    if magic != MAGIC:
        if magic in (0, 1):
            raise UnsupportedRecordFormat(f"message format v{magic} is not supported, only v2")
        raise CorruptRecord(f"magic {magic} is not a record batch's")
    if size < BATCH_OVERHEAD:
        raise CorruptRecord(f"record batch of {size} bytes is smaller than its header of 61")


def check_batch(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Checks length, magic, CRC and the counts of the batch at ``pos``; what every reader of foreign bytes calls.

    Returns:
        The header. A leader calls :func:`check_client_batch` with it next.

    Raises:
        CorruptRecord: truncated, an impossible length, or a wrong CRC.
        InvalidRecord: counts that contradict each other, or an unknown codec.
        UnsupportedRecordFormat: magic 0 or 1.
    """
    try:
        header = BatchHeader._make(HEADER.unpack_from(buf, pos))
    except struct.error:
        # Message sets v0 and v1 may be shorter than a v2 header; their magic sits at the same place.
        if len(buf) - pos > 16:
            _check_size_and_magic(BATCH_OVERHEAD, buf[pos + 16])
        raise CorruptRecord(f"{len(buf) - pos} bytes are too few for a record batch of at least 61") from None
    (_, batch_length, _, magic, crc, attributes, last_offset_delta, _, _, _, _, _, record_count) = header
    size = batch_length + LOG_OVERHEAD
    if magic != MAGIC or size < BATCH_OVERHEAD:
        _check_size_and_magic(size, magic)
    if size > len(buf) - pos:
        raise CorruptRecord(f"record batch of {size} bytes is cut off after {len(buf) - pos}")
    if type(buf) is not memoryview:
        buf = memoryview(buf)
    computed = crc32c(buf[pos + CRC_START : pos + size])
    if computed != crc:
        raise CorruptRecord(f"record is corrupt (stored crc = {crc}, computed crc = {computed})")
    if last_offset_delta < 0 or not 0 <= record_count <= last_offset_delta + 1:
        raise InvalidRecord(f"{record_count} records do not fit a last offset delta of {last_offset_delta}")
    if attributes & COMPRESSION_MASK > 4:
        raise InvalidRecord(f"unknown compression type id {attributes & COMPRESSION_MASK}")
    return header


def check_client_batch(header: BatchHeader) -> None:
    """Checks the rules that hold for a batch on its way in from a producer, but not for stored ones.

    Raises:
        InvalidRecord: no records, gaps in the offsets, a control batch, or a producer id without a sequence.
    """
    if header.record_count <= 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"inconsistent batch: {header.record_count} records, but a last offset delta of {header.last_offset_delta}"
        )
    if header.attributes & CONTROL:
        raise InvalidRecord("clients are not allowed to write control records")
    if header.producer_id > -1 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidRecord(
            f"invalid sequence number {header.base_sequence} or epoch {header.producer_epoch}"
            f" in a batch of producer {header.producer_id}"
        )
    if header.attributes & TRANSACTIONAL and header.producer_id < 0:
        raise InvalidRecord("a transactional batch needs a producer id")
    if header.attributes & DELETE_HORIZON:
        raise InvalidRecord("clients are not allowed to set a delete horizon")


def patch(buf: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Assigns offset and leader epoch in place; the CRC covers neither."""
    _int64.pack_into(buf, pos, base_offset)
    _int32.pack_into(buf, pos + 12, leader_epoch)


def set_max_timestamp_log_append(buf: bytearray | memoryview, pos: int, timestamp: int) -> None:
    """Stamps a batch with LogAppendTime: sets the attribute and maxTimestamp and computes the CRC anew (KIP-32)."""
    view = memoryview(buf)
    size: int = _int32.unpack_from(view, pos + 8)[0] + LOG_OVERHEAD
    attributes: int = _int16.unpack_from(view, pos + CRC_START)[0]
    _int16.pack_into(view, pos + CRC_START, attributes | LOG_APPEND_TIME)
    _int64.pack_into(view, pos + 35, timestamp)
    _uint32.pack_into(view, pos + 17, crc32c(view[pos + CRC_START : pos + size]))
