"""Finds a record by its time, exactly: for ListOffsets by timestamp.

The time index names a batch before which all records are older. From there batches are skipped by their largest timestamp, and the
first that can hold the record is decoded, decompressed if need be. Records need not be in the order of their timestamps: the
result is the first record by offset that is young enough.

Source: Kafka's `LogSegment.findOffsetByTimestamp`, `UnifiedLog.fetchOffsetByTimestamp`; KIP-79, KIP-734.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.records.record import iter_records


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


def first_at_or_after(segments: LogSegments, timestamp: int, log_start_offset: int) -> TimestampAndOffset | None:
    """Return the first record at or after `timestamp`; None if all are older."""
    for segment in segments.starting_with(log_start_offset):
        if segment.size and segment.max_timestamp >= timestamp:
            found = _find(segment, timestamp, log_start_offset)
            if found is not None:
                return found
    return None


def first_with_largest(segments: LogSegments, log_start_offset: int) -> TimestampAndOffset | None:
    """Return the first record with the largest timestamp; None if no record has one."""
    best: LogSegment | None = None
    for segment in segments.starting_with(log_start_offset):
        if segment.size and segment.max_timestamp > (-1 if best is None else best.max_timestamp):
            best = segment
    return None if best is None else _find(best, best.max_timestamp, log_start_offset)


def _find(segment: LogSegment, timestamp: int, log_start_offset: int) -> TimestampAndOffset | None:
    after = max(log_start_offset, segment.base_offset)
    entry = segment.time_index.last_before(timestamp)
    if entry is not None and segment.batch_has_timestamp(entry[1], entry[0]):
        after = max(after, entry[1])
    for position, header in segment.headers(segment.locate(after)):
        if header.max_timestamp < timestamp or header.last_offset < log_start_offset:
            continue
        for record in iter_records(segment.read_batch(position, header)):
            if record.timestamp >= timestamp and record.offset >= log_start_offset:
                return TimestampAndOffset(record.offset, record.timestamp, header.partition_leader_epoch)
    return None
