"""What is durable, and when."""

from __future__ import annotations

import contextlib
import errno
import itertools
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.simulation.disk import MUTATIONS, SimDisk
from tests.at_once import at_once
from tests.log.small_log import Clock, open_log
from tests.log.story import append, batch, read_all


def test_failed_sync_stops_writes_until_reopened() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1)
    disk.on_call = lambda call, path: OSError(errno.EIO, "lost") if call == "sync" else None
    with pytest.raises(KafkaStorageError):
        log.flush()
    disk.on_call = None
    with pytest.raises(KafkaStorageError):
        append(log, 1)
    with pytest.raises(KafkaStorageError):
        log.close()
    assert len(read_all(PartitionLog(disk, log.directory, log.config, now_ms=Clock()))) == 2


def test_flush_messages_syncs_before_the_append_returns() -> None:
    disk = SimDisk()
    log = open_log(disk, flush_messages=4)
    append(log, 1)
    assert log.recovery_point == 0
    append(log, 1)
    assert log.recovery_point == 4
    disk.crash()
    assert len(read_all(PartitionLog(disk, log.directory, log.config, now_ms=Clock()))) == 4


def test_active_segments_indexes_are_not_synced_but_sealed_ones_are() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=400, index_interval_bytes=50)
    synced: list[str] = []
    disk.on_call = lambda call, path: synced.append(path.rpartition("/")[2]) if call.startswith("sync") else None  # type: ignore[func-returns-value]
    append(log, 1)
    log.flush()
    assert synced == ["00000000000000000000.log", "partition.metadata", "orders-0", "data"]
    synced.clear()
    log.flush()
    assert synced == []
    while log.segment_count == 1:
        append(log, 1)
    base = log.log_end_offset - 2
    # The transaction index is tried as well, and need not exist.
    assert sorted(name for name in synced if not name.endswith(".txnindex")) == sorted(
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            f"{base:020d}.snapshot",
            "partition.metadata",
            "orders-0",
            "data",
        ]
    )
    assert log.recovery_point == base


def test_flush_right_before_a_roll_still_syncs_the_sealed_indexes() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=400, index_interval_bytes=50)
    append(log, 3)
    log.flush()
    synced: list[str] = []
    disk.on_call = lambda call, path: synced.append(path) if call == "sync" else None
    while log.segment_count == 1:
        append(log, 1)
    assert f"{log.directory}/00000000000000000000.index" in synced


def never(_: Callable[[], None]) -> Future[None]:
    """The future of work that is never done."""
    return Future()


def test_a_truncation_is_durable_before_anything_is_written_behind_it() -> None:
    disk = SimDisk()
    work: list[Callable[[], None]] = []
    log = PartitionLog(
        disk, "/data/orders-0", LogConfig(), now_ms=Clock(), run_blocking=lambda job, done: work.append(job)
    )
    append(log, 4, leader_epoch=1)
    log.flush()
    calls: list[str] = []
    disk.on_call = lambda call, path: calls.append(f"{call} {path}") if call in MUTATIONS else None
    assert log.truncate_to(2)
    assert calls == ["truncate /data/orders-0/00000000000000000000.log"]
    [begun] = work
    calls.clear()
    append(log, 1, leader_epoch=1)
    assert calls == [
        "sync /data/orders-0/00000000000000000000.log",
        "sync /data/orders-0/leader-epoch-checkpoint",
        "sync /data/orders-0/partition.metadata",
        "sync_dir /data/orders-0",
        "sync_dir /data",
        "pwrite /data/orders-0/00000000000000000000.log",
    ]
    calls.clear()
    begun()
    append(log, 1, leader_epoch=1)
    assert [call.split()[0] for call in calls] == [
        "sync",
        "sync",
        "sync",
        "sync_dir",
        "sync_dir",
        "pwrite",
    ]


def test_a_truncation_is_durable_before_the_next_segment_begins() -> None:
    disk = SimDisk()
    config = LogConfig(segment_bytes=800)
    log = PartitionLog(disk, "/data/orders-0", config, now_ms=Clock(), run_blocking=lambda job, done: None)
    append(log, 7)
    assert log.segment_count == 1
    log.truncate_to(12)
    calls: list[str] = []
    disk.on_call = lambda call, path: calls.append(call) if call in MUTATIONS else None
    log.append_as_leader(batch(12, 10), 0)
    assert log.segment_count == 2
    assert calls[:6] == ["sync", "sync", "sync", "sync_dir", "sync_dir", "create"]


def test_an_append_does_not_wait_for_a_truncation_whose_sync_has_ended() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 4)
    log.truncate_to(2)
    calls: list[str] = []
    disk.on_call = lambda call, _: calls.append(call)
    append(log, 1)
    assert calls == ["pwrite"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("end", [0, 3, 6, 12])
def test_what_a_truncation_removed_stays_away_after_a_clean_stop(end: int, seed: int) -> None:
    disk = SimDisk(seed)
    opened = LogManager(disk, "/data", now_ms=Clock(), run_blocking=never)
    at_once(opened.open())
    config = LogConfig(segment_bytes=500)
    log = opened.get_or_create("orders", 0, None, config)
    append(log, 10)
    log.flush()
    if end == 12:
        log.truncate_fully_and_start_at(end)
    else:
        log.truncate_to(end)
    start = log.log_end_offset
    at_once(opened.close())
    disk.crash()
    again = LogManager(disk, "/data", now_ms=Clock())
    at_once(again.open())
    assert again.had_clean_shutdown
    log = again.get_or_create("orders", 0, None, config)
    assert log.log_end_offset == start
    assert [record.offset for record in read_all(log)] == list(range(log.log_start_offset, start))
    assert log.log_start_offset == (12 if end == 12 else 0)


def test_a_truncation_that_fails_leaves_the_log_as_it_was_or_stops_writes() -> None:
    for number in itertools.count(1):
        disk = SimDisk()
        log = open_log(disk, segment_bytes=400)
        append(log, 10, leader_epoch=1)
        log.flush()
        disk.fail_call(number)
        with contextlib.suppress(KafkaStorageError):
            log.truncate_to(3)
        has_failed = not disk.fail_no_call()
        with contextlib.suppress(KafkaStorageError):
            append(log, 1, leader_epoch=2)
            assert [record.offset for record in read_all(log)] == list(range(log.log_end_offset))
        disk.crash()
        again = PartitionLog(disk, log.directory, log.config, now_ms=Clock())
        assert again.log_end_offset >= 2
        assert [record.offset for record in read_all(again)] == list(range(again.log_end_offset))
        if not has_failed:
            break
    assert number > 10
