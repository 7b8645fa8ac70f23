"""When a segment ends."""

from __future__ import annotations

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.open_files import OpenFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.log.rolling import should_roll
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock, open_log, plain
from tests.log.story import NOW_MS, append, read_all


def test_rolls_by_size() -> None:
    size = len(plain())
    log = open_log(segment_bytes=3 * size)
    for _ in range(7):
        log.append_as_leader(plain(), 0)
    assert log.segment_count == 3
    assert log.size_in_bytes == 7 * size


def test_rolls_by_the_records_time() -> None:
    clock = Clock()
    log = open_log(clock=clock, segment_ms=1000)
    log.append_as_leader(plain(timestamp=NOW_MS), 0)
    clock.ms += 5000
    log.append_as_leader(plain(timestamp=NOW_MS + 1000), 0)
    assert log.segment_count == 1
    log.append_as_leader(plain(timestamp=NOW_MS + 1001), 0)
    assert log.segment_count == 2


def test_a_compacted_log_rolls_before_its_records_wait_too_long() -> None:
    for policy, expected in (("compact", 2), ("delete", 1)):
        log = open_log(segment_ms=1000, max_compaction_lag_ms=100, cleanup_policy=frozenset({policy}))
        log.append_as_leader(plain(timestamp=NOW_MS), 0)
        log.append_as_leader(plain(timestamp=NOW_MS + 100), 0)
        assert log.segment_count == 1
        log.append_as_leader(plain(timestamp=NOW_MS + 101), 0)
        assert log.segment_count == expected


def test_rolls_by_the_clock_without_timestamps() -> None:
    clock = Clock()
    log = open_log(clock=clock, segment_ms=1000)
    log.append_as_leader(plain(timestamp=-1), 0)
    clock.ms += 1000
    log.append_as_leader(plain(timestamp=-1), 0)
    assert log.segment_count == 1
    clock.ms += 1
    log.append_as_leader(plain(timestamp=-1), 0)
    assert log.segment_count == 2


def test_rolls_when_an_index_is_full() -> None:
    log = open_log(segment_index_bytes=80, index_interval_bytes=0)
    append(log, 30)
    assert log.segment_count >= 3
    assert len(read_all(log)) == 60


def test_rolls_before_a_relative_offset_overflows() -> None:
    log = open_log()
    log.truncate_fully_and_start_at(10)
    log.append_as_follower(build_batch([(NOW_MS, b"k", b"v", ())], base_offset=10, leader_epoch=0), 0)
    far = 10 + 2**31
    log.append_as_follower(build_batch([(NOW_MS, b"k", b"v", ())], base_offset=far, leader_epoch=0), 0)
    assert log.segment_count == 2
    assert [r.offset for r in read_all(log)] == [10, far]


def test_jitter_rolls_earlier_but_never_later() -> None:
    waits = set()
    for partition in range(20):
        clock = Clock()
        config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
        log = PartitionLog(SimDisk(), f"/data/orders-{partition}", config, now_ms=clock)
        while log.segment_count == 1:
            log.append_as_leader(plain(timestamp=clock.ms), 0)
            clock.ms += 10
        waits.add(clock.ms - 10 - NOW_MS)
    assert len(waits) > 5
    assert 600 <= min(waits) <= max(waits) <= 1010


def segment(*, base: int = 100, size: int = 500, first_timestamp: int | None = 1_000) -> LogSegment:
    made = LogSegment(SimDisk(), OpenFiles(), "/t", base, index_interval_bytes=1, created_ms=5_000, size=size)
    made.first_timestamp = first_timestamp
    return made


def rolls(active: LogSegment, **changes: int) -> bool:
    """Whether an append of 100 bytes, which alone is no reason, begins a new segment."""
    settings = {name: changes.pop(name) for name in list(changes) if name in LogConfig.__slots__}
    append_of = {"size": 100, "last_offset": 200, "max_timestamp": 1_000, "now_ms": 5_000, **changes}
    return should_roll(active, LogConfig(**settings), **append_of)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"segment_bytes": 600}, False),
        ({"segment_bytes": 599}, True),
        ({"last_offset": 100 + RELATIVE_OFFSET_MAX}, False),
        ({"last_offset": 101 + RELATIVE_OFFSET_MAX}, True),
        ({"segment_ms": 50, "max_timestamp": 1_050}, False),
        ({"segment_ms": 50, "max_timestamp": 1_051}, True),
        # Without a timestamp in the append the clock counts, from the segment's creation.
        ({"segment_ms": 50, "max_timestamp": -1, "now_ms": 5_050}, False),
        ({"segment_ms": 50, "max_timestamp": -1, "now_ms": 5_051}, True),
        ({"segment_ms": 50, "max_timestamp": 0, "now_ms": 5_051}, False),
    ],
)
def test_an_append_rolls_at_each_limit_and_not_before(changes: dict[str, int], expected: bool) -> None:
    assert rolls(segment(), **changes) is expected


def test_an_empty_segment_rolls_only_by_size_and_offsets() -> None:
    empty = segment(size=0)
    assert not rolls(empty, segment_ms=50, max_timestamp=9_999_999)
    assert rolls(empty, last_offset=101 + RELATIVE_OFFSET_MAX)
    assert not rolls(segment(first_timestamp=0), segment_ms=50, max_timestamp=50, now_ms=9_999)
    assert rolls(segment(first_timestamp=0), segment_ms=50, max_timestamp=51)


def test_the_first_timestamp_is_read_from_a_reopened_segment() -> None:
    log = open_log(segment_ms=50)
    log.append_as_leader(plain(timestamp=NOW_MS), 0)
    log.segments.active.first_timestamp = None
    assert rolls(log.segments.active, segment_ms=50, max_timestamp=NOW_MS + 51)
    log.segments.active.first_timestamp = None
    assert not rolls(log.segments.active, segment_ms=50, max_timestamp=NOW_MS + 50)


@pytest.mark.parametrize(("index", "entries", "limit"), [("offset", 9, 80), ("time", 8, 120)])
def test_a_full_index_rolls(index: str, entries: int, limit: int) -> None:
    """An offset index may fill its bytes; a time index keeps room for the last entry, made when the segment is sealed."""
    active = segment()
    for entry in range(entries):
        if index == "offset":
            active.offset_index.append(101 + entry, 10 * entry)
        else:
            active.time_index.maybe_append(10 + entry, 101 + entry)
    assert not rolls(active, segment_index_bytes=limit)
    active.offset_index.append(150, 450)
    active.time_index.maybe_append(50, 150)
    assert rolls(active, segment_index_bytes=limit)
