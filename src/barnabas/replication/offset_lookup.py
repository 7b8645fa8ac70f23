"""Look up the offset of a timestamp.

    -1 LATEST           the end that the reader may see
    -2 EARLIEST         log start
    -3 MAX_TIMESTAMP    the record with the largest timestamp
    -4 EARLIEST_LOCAL   log start: no tier has older records
    -5 LATEST_TIERED, -6 EARLIEST_PENDING_UPLOAD   none: nothing is tiered
    else                first record at or after the timestamp

A record is found only if the reader may see it: below the high watermark, or below the last stable offset for read_committed.

A new leader's high watermark may be lower than its predecessor's was. Until it reaches the start of the leader's epoch, a consumer that
looks for the end, or for a record that is not below it, gets OFFSET_NOT_AVAILABLE and retries: the end never goes back (KIP-207).

Source: Kafka's `Partition.fetchOffsetForTimestamp`, `UnifiedLog.fetchOffsetByTimestamp`; KIP-79, KIP-207, KIP-734, KIP-405, KIP-1005.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.log.timestamp_lookup import RecordsToSearch, TimestampAndOffset
from barnabas.replication.partition import Partition

__all__ = ["FoundOffset", "find_offset", "lookup_offset"]

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


async def find_offset(
    partition: Partition, timestamp: int, isolation_level: int | None, run: Callable[..., Awaitable[Any]]
) -> FoundOffset:
    """As `lookup_offset`, but search large batches in an executor.

    Args:
        run: the loop's `run_in_executor`.
    """
    from_offset = 0
    while True:
        try:
            return lookup_offset(partition, timestamp, isolation_level, from_offset=from_offset, is_apart=True)
        except RecordsToSearch as large:
            found = await run(None, large.search)
            if found is not None:
                return _visible(partition, found, isolation_level)
            from_offset = large.next_offset


def lookup_offset(
    partition: Partition,
    timestamp: int,
    isolation_level: int | None,
    *,
    from_offset: int = 0,
    is_apart: bool = False,
) -> FoundOffset:
    """Return the offset of a timestamp.

    Args:
        isolation_level: 0 or 1 for a consumer; None for a reader that may see the whole log.
        from_offset, is_apart: as `PartitionLog.offset_for_timestamp`.

    Raises:
        KafkaError: OFFSET_NOT_AVAILABLE, or reading the log failed.
        RecordsToSearch: only with `is_apart`.
    """
    log = partition.log
    if timestamp == LATEST:
        if isolation_level is not None:
            partition.check_high_watermark_is_known()
        return FoundOffset(_visible_end(partition, isolation_level), -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return FoundOffset(start, -1, log.epoch_for_offset(start))
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp_offset(from_offset=from_offset, is_apart=is_apart)
    elif timestamp < 0:
        return FoundOffset()
    else:
        found = log.offset_for_timestamp(timestamp, from_offset=from_offset, is_apart=is_apart)
    return _visible(partition, found, isolation_level)


def _visible(partition: Partition, found: TimestampAndOffset | None, isolation_level: int | None) -> FoundOffset:
    if found is not None and found.offset < _visible_end(partition, isolation_level):
        return FoundOffset(*found)
    if isolation_level is not None:
        partition.check_high_watermark_is_known()
    return FoundOffset()


def _visible_end(partition: Partition, isolation_level: int | None) -> int:
    log = partition.log
    if isolation_level is None:
        return log.log_end_offset
    return log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark
