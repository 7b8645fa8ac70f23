"""Look up the offset of a timestamp.

    -1 LATEST           the end that the reader may see
    -2 EARLIEST         log start
    -3 MAX_TIMESTAMP    the record with the largest timestamp
    -4 EARLIEST_LOCAL   log start: no tier has older records
    -5 LATEST_TIERED, -6 EARLIEST_PENDING_UPLOAD   none: nothing is tiered
    else                first record at or after the timestamp

A record is found only if the reader may see it: below the high watermark, or below the last stable offset for read_committed.

Source: Kafka's `Partition.fetchOffsetForTimestamp`, `UnifiedLog.fetchOffsetByTimestamp`; KIP-79, KIP-734, KIP-405, KIP-1005.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.replication.partition import Partition

__all__ = ["FoundOffset", "lookup_offset"]

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
READ_COMMITTED = 1


class FoundOffset(NamedTuple):
    """The result; all -1 if there is no such record."""

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


def lookup_offset(partition: Partition, timestamp: int, isolation_level: int | None) -> FoundOffset:
    """Return the offset of a timestamp.

    Args:
        isolation_level: 0 or 1 for a consumer; None for a reader that may see the whole log.

    Raises:
        KafkaError: reading the log failed.
    """
    log = partition.log
    if isolation_level is None:
        visible_end = log.log_end_offset
    elif isolation_level == READ_COMMITTED:
        visible_end = log.last_stable_offset
    else:
        visible_end = log.high_watermark
    if timestamp == LATEST:
        return FoundOffset(visible_end, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return FoundOffset(start, -1, log.epoch_for_offset(start))
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp_offset()
    elif timestamp < 0:
        return FoundOffset()
    else:
        found = log.offset_for_timestamp(timestamp)
    if found is None or found[0] >= visible_end:
        return FoundOffset()
    return FoundOffset(*found)
