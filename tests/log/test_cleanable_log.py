"""How much of a log can be cleaned."""

from __future__ import annotations

from barnabas.log.cleanable_log import measure
from tests.log.compacted import KEY, NOW_MS, Compacted, fill


def test_the_ratio_decides() -> None:
    compacted = Compacted(min_cleanable_dirty_ratio=0.5)
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 1
    first = compacted.cleaner.cleaned_to(KEY)
    assert first == compacted.log.log_end_offset
    fill(compacted, 4)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 1
    assert 0 < compacted.cleaner.stats.max_dirty_percent <= 50
    fill(compacted, 40)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 2


def test_young_segments_wait_for_min_compaction_lag() -> None:
    compacted = Compacted(min_compaction_lag_ms=100)
    fill(compacted)
    compacted.log.roll()
    limit = compacted.log.log_end_offset
    compacted.clock.ms += 101
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.cleaned_to(KEY) == limit
    assert [r.offset for r in compacted.records() if r.offset >= limit] == list(range(limit, limit + 48))


def test_old_records_are_cleaned_by_max_compaction_lag_though_the_log_is_clean_enough() -> None:
    compacted = Compacted(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1000)
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 0
    compacted.clock.ms += 3000
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == 1
    assert compacted.cleaner.stats.max_compaction_delay_seconds == 0
    before = compacted.cleaner.stats.cleanings
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == before


def test_a_checkpoint_outside_the_log_counts_for_nothing() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.log.roll()
    assert measure(compacted.log, 1000, NOW_MS).first_dirty_offset == 0
    compacted.log.delete_records_before(20)
    assert measure(compacted.log, 3, NOW_MS).first_dirty_offset == 20
    assert measure(compacted.log, 30, NOW_MS).first_dirty_offset == 30
