"""How much of a log compaction can clean, and from where to where.

    | clean            | cleanable (dirty)        | uncleanable             |
    ^ log start        ^ first dirty offset       ^ first uncleanable offset, a segment's base

- The first dirty offset is where the last cleaning ended, by its checkpoint; the log start if that offset is outside the log.
- Not cleaned: the active segment; the segment of the last stable offset and all after it; segments with a record younger than
  min.compaction.lag.ms, and all after them.
- A log is worth cleaning when cleanable / (clean + cleanable) bytes exceed min.cleanable.dirty.ratio, or when its oldest dirty
  record is older than max.compaction.lag.ms.

Source: Kafka's `LogCleanerManager.cleanableOffsets`, `LogToClean`; KIP-58, KIP-354.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.log.cleaning_task import CleaningTask, LastRecord, SourceSegment
from barnabas.log.log_config import INT64_MAX
from barnabas.log.log_segment import LogSegment
from barnabas.log.offset_index import ENTRY_SIZE as INDEX_ENTRY_SIZE
from barnabas.log.partition_log import PartitionLog
from barnabas.log.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE


class CleanerConfig(NamedTuple):
    """Kafka's `log.cleaner.*` settings, with its defaults."""

    enable: bool = True
    dedupe_buffer_bytes: int = 134_217_728
    load_factor: float = 0.9
    max_bytes_per_second: float = 1.7976931348623157e308
    backoff_ms: int = 15_000


class CleanableLog(NamedTuple):
    """The part of a log that may be cleaned. Bytes are of whole segments."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int
    """How much older than max.compaction.lag.ms the oldest dirty record is; 0 if it is younger."""

    @property
    def ratio(self) -> float:
        """Share of the bytes that no cleaning has read yet."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        return self.cleanable_bytes > 0 and (self.compaction_delay_ms > 0 or self.ratio > min_cleanable_dirty_ratio)


def measure(log: PartitionLog, cleaned_to: int | None, now_ms: int) -> CleanableLog:
    """Measure how dirty a log is.

    Args:
        cleaned_to: where the last cleaning ended, None if there was none.
    """
    segments = log.segments
    first_dirty = log.log_start_offset
    if cleaned_to is not None and first_dirty <= cleaned_to <= log.log_end_offset:
        first_dirty = cleaned_to
    active = segments.active
    dirty = [segment for segment in segments.starting_with(first_dirty) if segment is not active]
    config = log.config
    uncleanable = min(log.last_stable_offset, active.base_offset)
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        for segment in dirty:
            if segment.largest_timestamp() > youngest:
                uncleanable = min(uncleanable, segment.base_offset)
                break
    # Whole segments only: the segment of the limit is not cleaned.
    limit = segments.at(max(segments.slot(uncleanable), 0)).base_offset
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable_bytes = sum(segment.size for segment in dirty if segment.base_offset < limit)
    return CleanableLog(
        first_dirty,
        max(limit, segments.first_base_offset),
        clean_bytes,
        cleanable_bytes,
        _compaction_delay_ms(dirty, config.max_compaction_lag_ms, now_ms),
    )


def _compaction_delay_ms(dirty: list[LogSegment], max_compaction_lag_ms: int, now_ms: int) -> int:
    if max_compaction_lag_ms == INT64_MAX:
        return 0
    firsts = [
        first for first in (segment.load_first_timestamp() for segment in dirty) if first is not None and first > 0
    ]
    return max(now_ms - max_compaction_lag_ms - min(firsts), 0) if firsts else 0


def task_for(log: PartitionLog, cleanable: CleanableLog, settings: CleanerConfig, now_ms: int) -> CleaningTask:
    """Return everything that a cleaner needs to clean a log."""
    config = log.config
    segments = log.segments
    sources = [
        SourceSegment(
            segment.base_offset,
            segments.end_of(slot, log.log_end_offset),
            segment.size,
            segment.offset_index.entries * INDEX_ENTRY_SIZE,
            segment.time_index.entries * TIME_ENTRY_SIZE,
        )
        for slot, segment in enumerate(segments)
        if segment.base_offset < cleanable.first_uncleanable_offset
    ]
    return CleaningTask(
        directory=log.directory,
        sources=sources,
        first_dirty_offset=cleanable.first_dirty_offset,
        first_uncleanable_offset=cleanable.first_uncleanable_offset,
        aborted=log.aborted_transactions(segments.first_base_offset, cleanable.first_uncleanable_offset),
        producers=[LastRecord(entry.producer_id, entry.last_offset, entry.producer_epoch) for entry in log.producers()],
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        load_factor=settings.load_factor,
        max_bytes_per_second=settings.max_bytes_per_second,
    )
