"""Which segments go, and when their files do."""

from __future__ import annotations

from tests.log.small_log import Clock, open_log, plain
from tests.log.story import NOW_MS, append, batch, read_all
from tests.simulation.disk import SimDisk


def test_retention_by_time_deletes_whole_segments_below_the_high_watermark() -> None:
    clock = Clock()
    disk = SimDisk(now_ms=clock)
    size = len(plain())
    log = open_log(disk, clock=clock, segment_bytes=2 * size, retention_ms=1000, file_delete_delay_ms=500)
    for i in range(6):
        log.append_as_leader(plain(timestamp=NOW_MS + i), 0)
    clock.ms = NOW_MS + 1004
    assert log.apply_retention() == 0
    log.high_watermark = 6
    assert log.apply_retention() == 2
    assert log.log_start_offset == 4
    deleted = [path for path in disk.paths() if path.endswith(".deleted")]
    assert len(deleted) == 6
    clock.ms += 499
    log.remove_deleted_files()
    assert [path for path in disk.paths() if path.endswith(".deleted")] == deleted
    clock.ms += 1
    log.remove_deleted_files()
    assert not [path for path in disk.paths() if path.endswith(".deleted")]
    assert [r.offset for r in read_all(log)] == [4, 5]


def test_retention_may_empty_the_log() -> None:
    clock = Clock()
    log = open_log(clock=clock, retention_ms=1000)
    append(log, 3)
    log.high_watermark = 6
    clock.ms += 2000
    assert log.apply_retention() == 1
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (6, 6, 1)
    assert log.apply_retention() == 0
    log.append_as_leader(batch(6, sequence=6, timestamp=clock.ms), 0)
    assert [r.offset for r in read_all(log)] == [6, 7]


def test_retention_by_size() -> None:
    size = len(plain())
    log = open_log(segment_bytes=size, retention_bytes=3 * size)
    for _ in range(6):
        log.append_as_leader(plain(), 0)
    log.high_watermark = 6
    assert log.apply_retention() == 3
    assert log.log_start_offset == 3
    assert log.apply_retention() == 0


def test_retention_is_unlimited_with_minus_one_and_off_without_delete() -> None:
    clock = Clock()
    for settings in ({"retention_ms": -1}, {"cleanup_policy": frozenset({"compact"}), "retention_ms": 1}):
        log = open_log(clock=clock, segment_bytes=200, **settings)
        append(log, 5)
        log.high_watermark = 10
        clock.ms += 10**12
        assert log.apply_retention() == 0
        clock.ms = NOW_MS


def test_read_that_began_before_the_deletion_can_finish() -> None:
    clock = Clock()
    log = open_log(clock=clock, retention_ms=1000)
    append(log, 3)
    log.high_watermark = 6
    begun = log.read(0, 1000, max_offset=6)
    before = begun.read()
    clock.ms += 2000
    log.apply_retention()
    assert begun.read() == before
