"""Which segments go, and when their files do."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.log.open_files import OpenFiles
from barnabas.log.retention import DeletedFiles, count_deletable
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock, open_log, plain
from tests.log.story import NOW_MS, append, batch, read_all


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


def deletable(*, log_start_offset: int = 0, high_watermark: int = 30, now_ms: int = 1_000, **settings: int) -> int:
    """How many of three segments of 100 bytes, from offsets 0, 10 and 20 and times 100, 200 and 300, may be deleted."""
    made = []
    for slot in range(3):
        segment = LogSegment(SimDisk(), OpenFiles(), "/t", 10 * slot, index_interval_bytes=1, created_ms=0, size=100)
        segment.max_timestamp = 100 * (slot + 1)
        made.append(segment)
    return count_deletable(
        LogSegments(made),
        LogConfig(**{"retention_ms": -1, **settings}),  # type: ignore[arg-type]
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        log_end_offset=30,
        now_ms=now_ms,
    )


@pytest.mark.parametrize(("log_start_offset", "expected"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 2)])
def test_whole_segments_below_the_log_start_are_deleted_but_never_the_active_one(
    log_start_offset: int, expected: int
) -> None:
    assert deletable(log_start_offset=log_start_offset) == expected


@pytest.mark.parametrize(
    ("retention_ms", "expected"), [(-1, 0), (0, 3), (699, 3), (700, 2), (799, 2), (800, 1), (900, 0)]
)
def test_a_segment_is_deleted_when_it_is_older_than_retention_ms(retention_ms: int, expected: int) -> None:
    assert deletable(retention_ms=retention_ms) == expected


@pytest.mark.parametrize(
    ("retention_bytes", "expected"), [(-1, 0), (0, 3), (1, 2), (100, 2), (101, 1), (200, 1), (201, 0), (300, 0)]
)
def test_a_segment_is_deleted_when_the_log_without_it_has_retention_bytes(retention_bytes: int, expected: int) -> None:
    assert deletable(retention_bytes=retention_bytes) == expected


@pytest.mark.parametrize(("high_watermark", "expected"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3)])
def test_no_segment_above_the_high_watermark_is_deleted(high_watermark: int, expected: int) -> None:
    assert deletable(high_watermark=high_watermark, retention_ms=0) == expected


def test_each_deleted_file_is_removed_once_when_it_is_due(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    disk.mkdir("/t")
    for name in "abc":
        disk.put(f"/t/{name}", b"")
    works = []

    def run_blocking(work, done):  # type: ignore[no-untyped-def]
        works.append((work, done))

    files = DeletedFiles(disk, run_blocking)
    assert not files
    files.add(10, ("/t/a",))
    files.add(20, ("/t/b", "/t/missing"))
    files.add(30, ("/t/c",))
    files.remove(9)
    assert (works, bool(files)) == ([], True)
    files.remove(20)
    files.remove(20)
    [(work, done)] = works
    work()
    assert disk.paths() == ["/t/c"]
    done(None)
    done(FileNotFoundError())
    assert not caplog.records
    done(OSError(errno.EIO, "lost"))
    assert "Cannot remove deleted segments" in caplog.text
    assert files
    files.remove(0, at_once=True)
    assert (disk.paths(), bool(files), len(works)) == ([], False, 1)
