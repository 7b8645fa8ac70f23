"""When the active segment is full (data plane, pure but for one read of its first timestamp).

A segment ends before an append that would make it larger than segment.bytes, put an offset beyond its relative offsets, or comes
more than segment.ms (of a compacted topic: max.compaction.lag.ms, if that is less) after its first record; and when an index is full.
Time counts by the records' timestamps, and by the clock only if they have none, so that a replica rolls where its leader did.

Source: Kafka's `LogSegment.shouldRoll`, `LogConfig.maxSegmentMs`; KIP-354.
"""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.offset_index import ENTRY_SIZE as INDEX_ENTRY_SIZE
from barnabas.log.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from barnabas.records.checksum import crc32c


def should_roll(
    segment: LogSegment, config: LogConfig, *, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether an append of `size` bytes up to `last_offset` belongs into a new segment."""
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
        # Only a sealed segment can be compacted, so none stays open for longer than its records may wait.
        most = config.max_compaction_lag_ms
    if waited > most - (_jitter_ms(segment, config) if config.segment_jitter_ms else 0):
        return True
    if segment.offset_index.entries >= config.segment_index_bytes // INDEX_ENTRY_SIZE:
        return True
    return segment.time_index.entries >= config.segment_index_bytes // TIME_ENTRY_SIZE - 1


def _jitter_ms(segment: LogSegment, config: LogConfig) -> int:
    """How much earlier this segment rolls by time, so that not all logs of a topic roll at once."""
    most = min(config.segment_jitter_ms, config.segment_ms)
    return crc32c(segment.path.encode()) % most if most > 0 else 0
