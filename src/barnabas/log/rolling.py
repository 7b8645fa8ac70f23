"""Decides when the active segment is full.

A segment ends before an append that would make it larger than segment.bytes, put an offset beyond its relative offsets, or is
more than segment.ms (of a compacted topic: max.compaction.lag.ms, if that is less) later than its first record; and when an index is full.
Time is that of the records, and the clock's only if they have no timestamps, so that a replica rolls where its leader did.

Source: Kafka's `LogSegment.shouldRoll`, `LogConfig.maxSegmentMs`; KIP-354.
"""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.offset_index import ENTRY_SIZE as INDEX_ENTRY_SIZE
from barnabas.log.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from barnabas.records.checksum import crc32c


def should_roll(
    segment: LogSegment, config: LogConfig, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Return whether an append of `size` bytes up to `last_offset` belongs in a new segment."""
    if segment.size > config.segment_bytes - size:
        return True
    if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return True
    if not segment.size:
        return False
    first = segment.first_timestamp
    if first is None:
        first = segment.load_first_timestamp()
    if first is not None and first >= 0 and max_timestamp >= 0:
        waited = max_timestamp - first
    else:
        waited = now_ms - segment.created_ms
    most = config.segment_ms
    if config.max_compaction_lag_ms < most and config.compact:
        # Only sealed segments are compacted, so a segment must be sealed before its records have waited too long.
        most = config.max_compaction_lag_ms
    if waited > most - (_jitter_ms(segment, config) if config.segment_jitter_ms else 0):
        return True
    if segment.offset_index.entries >= config.segment_index_bytes // INDEX_ENTRY_SIZE:
        return True
    return segment.time_index.entries >= config.segment_index_bytes // TIME_ENTRY_SIZE - 1


def _jitter_ms(segment: LogSegment, config: LogConfig) -> int:
    """Return how much earlier this segment rolls by time, so that not all logs of a topic roll together."""
    most = min(config.segment_jitter_ms, config.segment_ms)
    return crc32c(segment.path.encode()) % most if most > 0 else 0
