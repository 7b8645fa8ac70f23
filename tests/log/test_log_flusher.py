"""What is durable, and when."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.errors import (
    KafkaStorageError,
)
from barnabas.log.partition_log import PartitionLog
from tests.log.small_log import Clock, open_log
from tests.log.story import append, read_all
from tests.simulation.disk import SimDisk


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
    assert synced == ["00000000000000000000.log", "orders-0", "data"]
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
    disk.on_call = lambda call, path: synced.append(path) if call == "sync" else None  # type: ignore[func-returns-value]
    while log.segment_count == 1:
        append(log, 1)
    assert f"{log.directory}/00000000000000000000.index" in synced
