"""The exchange of segments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.log.cleanable_log import CleanerConfig
from tests.log.compacted import KEY, Compacted, fill, stepping


def test_reads_that_have_begun_end_with_the_old_bytes() -> None:
    compacted = Compacted(file_delete_delay_ms=500)
    fill(compacted)
    begun = compacted.log.read(0, 10_000, max_offset=48)
    expected = begun.read()
    compacted.clean()
    fill(compacted)
    compacted.clean()
    assert begun.read() == expected
    assert compacted.log.read(0, 10_000, max_offset=48).read() != expected
    compacted.clock.ms += 500
    compacted.log.remove_deleted_files()
    assert not [path for path in compacted.disk.paths() if path.endswith(".deleted")]


def test_a_truncation_between_rename_and_sync_gives_the_exchange_up() -> None:
    waiting: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    compacted = Compacted(run_blocking=lambda work, done: waiting.append((work, done)))
    fill(compacted)
    compacted.log.roll()
    waiting.clear()
    compacted.cleaner.poll()
    assert [path for path in compacted.disk.paths() if path.endswith(".log.swap")]
    compacted.log.truncate_to(30)
    assert not [path for path in compacted.disk.paths() if path.endswith(".swap")]
    # A kill here, between the two: the old segments count.
    twin = Compacted(compacted.disk.copy())
    assert twin.log.log_end_offset == 30
    left = compacted.pairs()
    compacted.cleaner.config = CleanerConfig(enable=False)
    while waiting:
        work, done = waiting.pop(0)
        work()
        done(None)
    assert not compacted.cleaner.is_cleaning(KEY)
    assert compacted.pairs() == left
    assert compacted.cleaner.stats.cancelled == 1
    assert not [path for path in compacted.disk.paths() if path.endswith((".swap", ".cleaned"))]


def test_segments_that_are_gone_are_not_replaced() -> None:
    compacted, worker = stepping(retention_bytes=1, cleanup_policy=frozenset({"compact", "delete"}))
    compacted.clean()
    compacted.log.apply_retention()
    left = compacted.pairs()
    with pytest.raises(FileNotFoundError):
        worker.step()
    worker.end_cancelled()
    assert compacted.pairs() == left
