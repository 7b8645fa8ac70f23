"""Finds a record by its time, exactly: for ListOffsets by timestamp.

The time index names a batch before which all records are older. From there batches are skipped by their largest timestamp, and the
first that can hold the record is decoded, decompressed if need be. Records need not be in the order of their timestamps: the
result is the first record by offset that is young enough.

Decoding a large batch takes too long for the event loop. A caller that can do it elsewhere gets `RecordsToSearch` instead, runs `search`
in an executor, and if that finds nothing looks further from the next batch on. Nothing is kept meanwhile but the batch's bytes, so
segments may come and go.

Source: Kafka's `LogSegment.findOffsetByTimestamp`, `UnifiedLog.fetchOffsetByTimestamp`; KIP-79, KIP-734.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.log.errors import reading
from barnabas.log.large_batch import is_large
from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BatchHeader


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


Found = TimestampAndOffset | None
"""The record; None if the log has none that is young enough."""


class RecordsToSearch(Exception):
    """The next step of the look-up is to decode a batch, and the batch is too large for the event loop.

    Attributes:
        next_offset: where to look further if the batch has no such record.
    """

    def __init__(self, batch: bytes, header: BatchHeader, timestamp: int, start_offset: int, max_bytes: int) -> None:
        super().__init__()
        self.next_offset = header.next_offset
        self._arguments = (batch, header, timestamp, start_offset, max_bytes)

    def search(self) -> TimestampAndOffset | None:
        """Return the record, None if the batch has none; blocks, and may run in any thread. Raises as `iter_records`."""
        return _search(*self._arguments)


def _search(
    batch: bytes, header: BatchHeader, timestamp: int, start_offset: int, max_bytes: int
) -> TimestampAndOffset | None:
    for record in iter_records(batch, max_bytes=max_bytes):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampAndOffset(record.offset, record.timestamp, header.partition_leader_epoch)
    return None


class Lookup(NamedTuple):
    """How to look.

    Attributes:
        start_offset: where the look-up begins: the log's start, or behind batches that were searched already.
        max_bytes: how many bytes of records a batch may open into.
        is_apart: raise `RecordsToSearch` for a large batch.
    """

    start_offset: int
    max_bytes: int
    is_apart: bool = False


@reading()
def first_at_or_after(segments: LogSegments, timestamp: int, lookup: Lookup) -> TimestampAndOffset | None:
    """Return the first record at or after `timestamp`; None if all are older. KafkaStorageError if the disk failed."""
    for segment in segments.starting_with(lookup.start_offset):
        if segment.size and segment.max_timestamp >= timestamp:
            found = _find(segment, timestamp, lookup)
            if found is not None:
                return found
    return None


@reading()
def first_with_largest(segments: LogSegments, lookup: Lookup) -> TimestampAndOffset | None:
    """Return the first record with the largest timestamp; None if no record has one. KafkaStorageError if the disk failed."""
    best: LogSegment | None = None
    for segment in segments.starting_with(lookup.start_offset):
        if segment.size and segment.max_timestamp > (-1 if best is None else best.max_timestamp):
            best = segment
    return None if best is None else _find(best, best.max_timestamp, lookup)


def _find(segment: LogSegment, timestamp: int, lookup: Lookup) -> TimestampAndOffset | None:
    start_offset = lookup.start_offset
    after = max(start_offset, segment.base_offset)
    entry = segment.time_index.last_before(timestamp)
    if entry is not None and segment.batch_has_timestamp(entry[1], entry[0]):
        after = max(after, entry[1])
    for position, header in segment.headers(segment.locate(after)):
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        batch = segment.read_batch(position, header)
        if lookup.is_apart and is_large(header):
            raise RecordsToSearch(batch, header, timestamp, start_offset, lookup.max_bytes)
        found = _search(batch, header, timestamp, start_offset, lookup.max_bytes)
        if found is not None:
            return found
    return None
