"""When a segment ends."""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from tests.log.small_log import Clock, open_log, plain
from tests.log.story import NOW_MS, append, read_all
from tests.simulation.disk import SimDisk


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
    log.append_as_follower(build_batch([(NOW_MS, b"k", b"v", ())], base_offset=10, leader_epoch=0))
    far = 10 + 2**31
    log.append_as_follower(build_batch([(NOW_MS, b"k", b"v", ())], base_offset=far, leader_epoch=0))
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
