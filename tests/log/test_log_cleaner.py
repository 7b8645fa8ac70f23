"""When a log is cleaned, what interrupts a cleaning, and what the directory says afterwards."""

from __future__ import annotations

import errno
from collections.abc import Callable

from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.log_cleaner import RETRY_MS
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once
from tests.log.compacted import (
    DIRECTORY,
    KEY,
    NOW_MS,
    ROOT,
    Compacted,
    SteppingWorker,
    fill,
    latest_of_each_key,
    stepping,
)
from tests.log.small_log import Clock

TOPIC_ID = Uuid(bytes(range(16)))
COMPACT_AND_DELETE = LogConfig(
    cleanup_policy=frozenset({"compact", "delete"}),
    segment_bytes=250,
    min_cleanable_dirty_ratio=0.0,
    retention_ms=5000,
)


# Which log, and how much of it


def test_the_dirtiest_log_comes_first() -> None:
    one = Compacted(min_cleanable_dirty_ratio=0.1)
    fill(one)
    one.clean()
    fill(one, 12)
    one.log.roll()
    other = Compacted(min_cleanable_dirty_ratio=0.1)
    fill(other)
    other.log.roll()
    one.logs["other", 0] = other.log
    for path in other.disk.paths():
        one.disk.put(path.replace("orders-0", "other-0"), other.disk.contents(path))
    one.cleaned.clear()
    one.cleaner.poll()
    assert one.cleaned[:2] == [("other", 0), KEY]


def test_a_log_that_is_not_compacted_is_left_alone() -> None:
    compacted = Compacted(cleanup_policy=frozenset({"delete"}))
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 0
    assert len(compacted.records()) == 48


def test_switched_off_it_does_nothing() -> None:
    compacted = Compacted(cleaner=CleanerConfig(enable=False, backoff_ms=0))
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.stats.cleanings == 0


def test_nothing_to_clean_is_looked_at_again_after_the_backoff() -> None:
    compacted = Compacted(cleaner=CleanerConfig(dedupe_buffer_bytes=24_000, backoff_ms=15_000))
    compacted.cleaner.poll()
    fill(compacted)
    compacted.log.roll()
    compacted.clock.ms += 14_999
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == 0
    compacted.clock.ms += 1
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == 1


# The checkpoint


def test_the_checkpoint_is_kafkas() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.clean()
    assert compacted.disk.contents(f"{ROOT}/cleaner-offset-checkpoint") == b"0\n1\norders 0 48\n"
    again = compacted.reopened()
    assert again.cleaner.cleaned_to(KEY) == 48


def test_a_broken_checkpoint_is_ignored() -> None:
    disk = SimDisk()
    disk.put(f"{ROOT}/cleaner-offset-checkpoint", b"0\n7\norders")
    compacted = Compacted(disk)
    assert compacted.cleaner.cleaned_to(KEY) == 0
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.cleaned_to(KEY) == 48


# Interruptions


def test_appends_during_a_cleaning_are_kept() -> None:
    compacted, worker = stepping()
    before = compacted.pairs()
    compacted.clean()
    worker.step()
    compacted.put(("k0", "during"))
    after = compacted.log.log_end_offset
    while compacted.cleaner.is_cleaning(KEY):
        worker.step()
    assert compacted.pairs() == [*latest_of_each_key(before), (after - 1, "k0", "during")]


def test_a_truncation_ends_a_cleaning_and_nothing_is_put_back() -> None:
    compacted, worker = stepping()
    compacted.clean()
    worker.step()
    exchanged = {segment.base_offset for segment in compacted.log.segments}
    compacted.log.truncate_to(30)
    assert worker.was_cancelled
    left = compacted.pairs()
    # What the worker had already announced is not taken any more.
    worker.step()
    worker.end_cancelled()
    assert compacted.pairs() == left
    assert {segment.base_offset for segment in compacted.log.segments} <= exchanged
    assert compacted.cleaner.cleaned_to(KEY) == 0
    assert compacted.cleaner.stats.cancelled == 1
    assert compacted.reopened().pairs() == left


def test_a_truncation_takes_the_checkpoint_along() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.cleaned_to(KEY) == 48
    compacted.log.truncate_to(30)
    assert compacted.cleaner.cleaned_to(KEY) == 30
    assert compacted.disk.contents(f"{ROOT}/cleaner-offset-checkpoint") == b"0\n1\norders 0 30\n"


def test_a_cleaning_that_fails_leaves_what_it_had_announced_to_the_exchange() -> None:
    waiting: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []
    compacted = Compacted(run_blocking=lambda work, done: waiting.append((work, done)))
    fill(compacted)
    compacted.log.roll()
    waiting.clear()
    before, old = compacted.pairs(), [segment.size for segment in compacted.log.segments]
    fourth = compacted.log.segments.at(3).base_offset
    compacted.disk.on_call = lambda call, path: (
        OSError(errno.EIO, "refused", path) if path.endswith(f"{fourth:020d}.log.cleaned") else None
    )
    compacted.cleaner.poll()
    assert compacted.cleaner.is_cleaning(KEY)
    while waiting:
        work, done = waiting.pop(0)
        work()
        done(None)
    assert not compacted.cleaner.is_cleaning(KEY)
    assert compacted.cleaner.stats.failed == 1
    new = [segment.size for segment in compacted.log.segments]
    assert [was > now for was, now in zip(old, new, strict=True)][:4] == [True, True, True, False]
    assert set(latest_of_each_key(before)) <= set(compacted.pairs()) < set(before)
    assert not [path for path in compacted.disk.paths() if path.endswith((".swap", ".cleaned"))]


def test_a_deleted_log_ends_its_cleaning() -> None:
    compacted, worker = stepping()
    compacted.clean()
    compacted.cleaner.removed(KEY)
    assert worker.was_cancelled
    compacted.logs.clear()
    worker.end_cancelled()
    assert compacted.cleaned == [KEY]
    assert not compacted.cleaner.is_cleaning(KEY)


def test_a_closed_cleaner_touches_nothing_more() -> None:
    compacted, worker = stepping()
    compacted.clean()
    worker.step()
    compacted.cleaner.close()
    compacted.log.close(clean=True)
    names = compacted.disk.paths()
    worker.step()
    cleaned = {name for name in compacted.disk.paths() if name.endswith(".cleaned")}
    assert set(compacted.disk.paths()) - cleaned == set(names) - {n for n in names if n.endswith(".cleaned")}


# In a data directory


def manager(disk: SimDisk, clock: Clock, worker: SteppingWorker | None = None) -> LogManager:
    opened = LogManager(
        disk,
        ROOT,
        now_ms=clock,
        config_for=lambda _: COMPACT_AND_DELETE,
        make_cleaner_worker=None if worker is None else lambda _: worker,
        cleaner_config=CleanerConfig(dedupe_buffer_bytes=24_000, backoff_ms=0),
        retention_check_interval_ms=1000,
    )
    at_once(opened.open())
    return opened


def fill_log(log: PartitionLog, batches: int = 24) -> None:
    for i in range(batches):
        log.append_as_leader(build_batch([(NOW_MS, b"k%d" % (i % 3), b"%03d" % i * 10, ())]), 0)
    log.high_watermark = log.log_end_offset


def test_retention_waits_for_the_end_of_a_cleaning() -> None:
    disk, clock = SimDisk(), Clock()
    worker = SteppingWorker(disk)
    opened = manager(disk, clock, worker)
    log = opened.get_or_create("orders", 0, TOPIC_ID, COMPACT_AND_DELETE)
    fill_log(log)
    at_once(opened.housekeeping())
    assert opened.cleaner.is_cleaning(KEY)
    clock.ms += 10_000
    at_once(opened.housekeeping())
    assert log.log_start_offset == 0
    opened.cleaner.config = CleanerConfig(enable=False)
    while opened.cleaner.is_cleaning(KEY):
        worker.step()
    # Everything is older than retention.ms; only the active segment's successor is left.
    assert log.log_start_offset == 24
    at_once(opened.close())


def test_a_new_topic_of_an_old_name_begins_dirty() -> None:
    disk, clock = SimDisk(), Clock()
    opened = manager(disk, clock)
    fill_log(opened.get_or_create("orders", 0, TOPIC_ID, COMPACT_AND_DELETE))
    at_once(opened.housekeeping())
    cleaned_to = opened.cleaner.cleaned_to(KEY)
    assert cleaned_to > 0
    at_once(opened.close())
    again = manager(disk, clock)
    assert again.cleaner.cleaned_to(KEY) == cleaned_to
    # A topic of another id: the old directory is set aside.
    again.get_or_create("orders", 0, Uuid(bytes(range(1, 17))), COMPACT_AND_DELETE)
    assert again.cleaner.cleaned_to(KEY) == 0
    assert disk.contents(f"{ROOT}/cleaner-offset-checkpoint") == b"0\n0\n"
    at_once(again.close())


# Failures


def test_a_rotten_segment_makes_the_log_uncleanable() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.log.roll()
    path = f"{DIRECTORY}/00000000000000000000.log"
    data = bytearray(compacted.disk.contents(path))
    data[100] ^= 1
    compacted.disk.put(path, bytes(data))
    before = compacted.disk.paths()
    compacted.cleaner.poll()
    assert compacted.cleaner.uncleanable == {KEY}
    assert compacted.cleaner.stats.failed == 1
    assert compacted.disk.paths() == before
    compacted.clock.ms += 10 * RETRY_MS
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.failed == 1


def test_a_full_disk_costs_nothing_and_is_tried_again() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.log.roll()
    before = compacted.pairs()
    compacted.disk.capacity = compacted.disk.used + 50
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.failed == 1
    assert compacted.pairs() == before
    assert not [path for path in compacted.disk.paths() if path.endswith((".swap", ".cleaned"))]
    compacted.disk.capacity = None
    compacted.clock.ms += RETRY_MS - 1
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == 0
    compacted.clock.ms += 1
    compacted.cleaner.poll()
    assert compacted.cleaner.stats.cleanings == 1
    assert compacted.pairs() == latest_of_each_key(before)


def test_a_dedupe_buffer_without_room_for_a_key_is_said() -> None:
    compacted = Compacted(cleaner=CleanerConfig(dedupe_buffer_bytes=24, load_factor=0.9, backoff_ms=0))
    fill(compacted)
    compacted.clean()
    assert compacted.cleaner.stats.failed == 1


def _assert_in_between(compacted: Compacted, before: list[tuple[int, str, str | None]]) -> None:
    """What is left is at least what cleaning leaves, and at most what there was, in order."""
    left = compacted.pairs()
    assert set(latest_of_each_key(before)) <= set(left) <= set(before)
    assert left == sorted(left)
    assert compacted.log.log_end_offset == before[-1][0] + 1


def test_each_disk_call_may_fail() -> None:
    """Whichever call of a cleaning fails: nothing is lost, then or after a restart, and a later cleaning succeeds."""
    number = 0
    while True:
        number += 1
        compacted = Compacted()
        fill(compacted, 12)
        compacted.log.roll()
        before = compacted.pairs()
        compacted.disk.fail_call(number)
        compacted.cleaner.poll()
        is_planned = compacted.disk.fail_no_call()
        _assert_in_between(compacted, before)
        again = compacted.reopened()
        _assert_in_between(again, before)
        again.clock.ms += RETRY_MS
        again.clean()
        assert again.pairs() == latest_of_each_key(before), number
        if is_planned:
            break
    assert number > 30


def test_stats_are_what_the_last_cleaning_did() -> None:
    compacted = Compacted()
    fill(compacted)
    compacted.clean()
    stats = compacted.cleaner.stats
    assert stats.last is not None
    assert stats.last.messages_read == 48
    assert stats.last.messages_written == len(compacted.pairs())
    assert stats.bytes_read == stats.last.bytes_read > stats.bytes_written > 0
    assert 0 < stats.cleaner_recopy_percent < 100
    assert 0 < stats.max_buffer_utilization_percent <= 90
    stats.last = stats.last._replace(elapsed_seconds=7.9)
    assert stats.max_clean_time_seconds == 7
    assert compacted.cleaner.worker_deaths == 0
