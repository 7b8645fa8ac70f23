"""RecordBatch v2: its header, its checks, and the two fields a broker may change.

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
Formats v0 and v1 have batchLength and magic at the same places.

Nothing outside this module knows where a field is. It asks the functions below, or reads a `BatchHeader` and names the field.

Invariants:

- `size` = batchLength + 12 and at least 61.
- From a client, recordCount = lastOffsetDelta + 1. After compaction recordCount may be smaller, even 0.
- A batch is never split: a set of batches is cut only between two of them.

Sources: org.apache.kafka.common.record.DefaultRecordBatch; LogValidator.validateBatch; KIP-98, KIP-32.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.records.checksum import Buffer, crc32c
from barnabas.records.compression import Compression
from barnabas.records.errors import CorruptRecord, InvalidRecord, UnsupportedRecordFormat

HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_OVERHEAD = HEADER.size
LOG_OVERHEAD = 12
"""Bytes before batchLength begins to count."""
PREFIX_BYTES = 17
"""Bytes up to and including magic, which all formats share."""
MAGIC = 2

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
SEQUENCE_MASK = 0x7FFFFFFF
"""Sequences wrap from 2^31 - 1 to 0."""

_int64 = struct.Struct(">q")
_int32 = struct.Struct(">i")
_uint32 = struct.Struct(">I")
_int16 = struct.Struct(">h")
_length_and_magic = struct.Struct(">8xi4xb")
_prefix = struct.Struct(">8xi4xb4xh")
_producer = struct.Struct(">qhi")

assert BATCH_OVERHEAD == 61
assert _length_and_magic.size == PREFIX_BYTES


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
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        """The codec of the records.

        Raises:
            InvalidRecord: the attributes name no known codec.
        """
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
        """Whether base_timestamp holds the time from which compaction may remove tombstones (KIP-534)."""
        return bool(self.attributes & DELETE_HORIZON)

    @property
    def has_producer(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 without a base sequence."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MASK


# As `BatchHeader._make`, without its check of the count, on the way of every appended batch.
_new_header = tuple.__new__


class BatchProducer(NamedTuple):
    """The producer that a batch names."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


def length_and_magic(buf: Buffer, pos: int = 0) -> tuple[int, int]:
    """Return batchLength and magic of the batch at `pos`, of any format; 17 bytes of it must be there."""
    length, magic = _length_and_magic.unpack_from(buf, pos)
    return length, magic


def batch_prefix(buf: Buffer | None) -> tuple[int, int, int] | None:
    """Return batchLength, magic and attributes of the batch that the bytes begin with; None if they are too few for its header."""
    if buf is None or len(buf) < BATCH_OVERHEAD:
        return None
    length, magic, attributes = _prefix.unpack_from(buf)
    return length, magic, attributes


def is_transactional(buf: Buffer) -> bool:
    """Return whether the bytes begin with a batch of a transaction. Formats before v2 have no transactions."""
    return len(buf) >= BATCH_OVERHEAD and buf[MAGIC_AT] == MAGIC and bool(buf[ATTRIBUTES_AT + 1] & TRANSACTIONAL)


def producer_of(buf: Buffer) -> BatchProducer:
    """Return the producer of the batch that the bytes begin with; its whole header must be there."""
    return BatchProducer._make(_producer.unpack_from(buf, PRODUCER_ID_AT))


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Read the header at `pos`, and check only that it is there.

    Raises:
        CorruptRecord: fewer than 61 bytes remain.
    """
    try:
        return BatchHeader._make(HEADER.unpack_from(buf, pos))
    except struct.error:
        raise _too_short(buf, pos) from None


def _too_short(buf: Buffer, pos: int) -> CorruptRecord:
    return CorruptRecord(f"{len(buf) - pos} bytes are too few for a record batch of at least {BATCH_OVERHEAD}")


def iter_batches(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of every whole batch; a truncated batch at the end is left out.

    Raises:
        CorruptRecord: a batch length is smaller than the header.
        UnsupportedRecordFormat: a batch of another magic.
    """
    end = len(buf)
    unpack_from = HEADER.unpack_from
    make = BatchHeader._make
    while end - pos >= BATCH_OVERHEAD:
        header = make(unpack_from(buf, pos))
        size = header.batch_length + LOG_OVERHEAD
        _check_size_and_magic(size, header.magic)
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
        raise CorruptRecord(f"record batch of {size} bytes is smaller than its header of {BATCH_OVERHEAD}")


def check_batch(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Check length, magic, CRC and the counts of the batch at `pos`. Every reader of foreign bytes calls this.

    Returns:
        The header. A leader passes it to `check_client_batch` next.

    Raises:
        CorruptRecord: truncated, an impossible length, or a wrong CRC.
        InvalidRecord: counts that contradict each other, or an unknown codec.
        UnsupportedRecordFormat: magic 0 or 1.
    """
    try:
        fields = HEADER.unpack_from(buf, pos)
    except struct.error:
        # Message sets v0 and v1 may be shorter than a v2 header.
        if len(buf) - pos > MAGIC_AT:
            _check_size_and_magic(BATCH_OVERHEAD, buf[pos + MAGIC_AT])
        raise _too_short(buf, pos) from None
    _, batch_length, _, magic, crc, attributes, last_offset_delta, _, _, _, _, _, record_count = fields
    size = batch_length + LOG_OVERHEAD
    if magic != MAGIC or size < BATCH_OVERHEAD:
        _check_size_and_magic(size, magic)
    if size > len(buf) - pos:
        raise CorruptRecord(f"record batch of {size} bytes is cut off after {len(buf) - pos}")
    if type(buf) is not memoryview:
        buf = memoryview(buf)
    computed = crc32c(buf[pos + ATTRIBUTES_AT : pos + size])
    if computed != crc:
        raise CorruptRecord(f"record is corrupt (stored crc = {crc}, computed crc = {computed})")
    if last_offset_delta < 0 or not 0 <= record_count <= last_offset_delta + 1:
        raise InvalidRecord(f"{record_count} records do not fit a last offset delta of {last_offset_delta}")
    if attributes & COMPRESSION_MASK > Compression.ZSTD:
        raise InvalidRecord(f"unknown compression type id {attributes & COMPRESSION_MASK}")
    return _new_header(BatchHeader, fields)


def check_client_batch(header: BatchHeader) -> None:
    """Check the rules that hold for a batch from a producer, but not for stored ones.

    Raises:
        InvalidRecord: no records, gaps in the offsets, a control batch, or a producer id without a sequence.
    """
    _, _, _, _, _, attributes, last_offset_delta, _, _, producer_id, producer_epoch, base_sequence, record_count = (
        header
    )
    if record_count <= 0 or record_count != last_offset_delta + 1:
        raise InvalidRecord(
            f"inconsistent batch: {record_count} records, but a last offset delta of {last_offset_delta}"
        )
    if attributes & CONTROL:
        raise InvalidRecord("clients are not allowed to write control records")
    if producer_id > NO_PRODUCER_ID and (base_sequence < 0 or producer_epoch < 0):
        raise InvalidRecord(
            f"invalid sequence number {base_sequence} or epoch {producer_epoch} in a batch of producer {producer_id}"
        )
    if attributes & TRANSACTIONAL and producer_id < 0:
        raise InvalidRecord("a transactional batch needs a producer id")
    if attributes & DELETE_HORIZON:
        raise InvalidRecord("clients are not allowed to set a delete horizon")


def patch(buf: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Assign offset and leader epoch in place; the CRC covers neither."""
    _int64.pack_into(buf, pos, base_offset)
    _int32.pack_into(buf, pos + LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(buf: bytearray | memoryview, pos: int, timestamp: int) -> None:
    """Set attribute and maxTimestamp of a batch with LogAppendTime, and write its CRC again (KIP-32)."""
    view = memoryview(buf)
    length, _ = length_and_magic(view, pos)
    attributes: int = _int16.unpack_from(view, pos + ATTRIBUTES_AT)[0]
    _int16.pack_into(view, pos + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _int64.pack_into(view, pos + MAX_TIMESTAMP_AT, timestamp)
    _write_crc(view[pos : pos + length + LOG_OVERHEAD])


def assemble(header: BatchHeader, body: Buffer) -> bytearray:
    """Return the batch of a header and the records behind it; sets the header's batchLength and CRC.

    Args:
        body: the records, compressed as the attributes say.
    """
    batch = bytearray(BATCH_OVERHEAD + len(body))
    batch[BATCH_OVERHEAD:] = body
    HEADER.pack_into(batch, 0, *header)
    _int32.pack_into(batch, LENGTH_AT, len(batch) - LOG_OVERHEAD)
    _write_crc(memoryview(batch))
    return batch


def _write_crc(batch: memoryview) -> None:
    _uint32.pack_into(batch, CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
