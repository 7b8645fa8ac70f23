"""Producers' state and its snapshot files."""

from __future__ import annotations

import pytest

from barnabas.log.errors import InvalidProducerEpoch, OutOfOrderSequence
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import ProducerStateEntry
from tests.simulation.disk import SimDisk

NOW_MS = 1_000_000


def manager(disk: SimDisk | None = None) -> ProducerStateManager:
    disk = disk or SimDisk()
    disk.mkdir("/t")
    return ProducerStateManager(disk, "/t", expiration_ms=1000)


def describe(entries: list[ProducerStateEntry]) -> list[tuple[object, ...]]:
    return [
        (e.producer_id, e.producer_epoch, e.coordinator_epoch, e.last_timestamp, e.txn_first_offset, list(e.batches))
        for e in entries
    ]


def test_snapshots_are_taken_once_per_offset_and_the_newest_usable_is_loaded() -> None:
    disk = SimDisk()
    made = manager(disk)
    made.update(5, 0, 0, 0, 0, NOW_MS)
    made.map_end_offset = 1
    assert made.take_snapshot() == "/t/00000000000000000001.snapshot"
    assert made.take_snapshot() is None
    made.update(5, 0, 1, 1, 1, NOW_MS)
    made.map_end_offset = 2
    made.take_snapshot()
    made.update(5, 0, 2, 2, 2, NOW_MS)
    made.map_end_offset = 3
    made.take_snapshot()
    disk.put("/t/00000000000000000002.snapshot", b"rotten")
    made.load_snapshot(0, 2, NOW_MS)
    assert made.map_end_offset == 1
    assert made.producers[5].last_sequence == 0
    assert made.snapshots == [1]
    assert disk.listdir("/t") == ["00000000000000000001.snapshot"]


def test_expired_producers_are_not_loaded_but_open_transactions_are() -> None:
    disk = SimDisk()
    made = manager(disk)
    made.update(5, 0, 0, 0, 0, NOW_MS)
    made.update(6, 0, 0, 1, 1, NOW_MS, transactional=True)
    made.map_end_offset = 2
    made.take_snapshot()
    made.load_snapshot(0, 2, NOW_MS + 1000)
    assert list(made.producers) == [6]
    assert made.first_unstable_offset() == 1
    assert made.expire(NOW_MS + 10_000) == 0


def test_sequence_rules() -> None:
    made = manager()
    assert made.check(5, 0, 17, 19, 9) is None
    made.update(5, 0, 19, 0, 2, NOW_MS)
    assert made.check(5, 0, 20, 20, 9) is None
    duplicate = made.check(5, 0, 17, 19, 9)
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset, duplicate.first_sequence) == (0, 2, 17)
    for first, last in ((17, 18), (18, 19), (21, 21), (0, 0)):
        with pytest.raises(OutOfOrderSequence):
            made.check(5, 0, first, last, 9)
    with pytest.raises(OutOfOrderSequence):
        made.check(5, 1, 20, 20, 9)
    assert made.check(5, 1, 0, 0, 9) is None
    made.update(5, 1, 0, 3, 3, NOW_MS)
    with pytest.raises(InvalidProducerEpoch):
        made.check(5, 0, 20, 20, 9)


def test_markers_end_transactions_and_fence() -> None:
    made = manager()
    made.update(5, 0, 0, 10, 10, NOW_MS, transactional=True)
    made.update(5, 0, 1, 11, 11, NOW_MS, transactional=True)
    made.update(6, 0, 0, 12, 12, NOW_MS, transactional=True)
    assert made.first_unstable_offset() == 10
    completed = made.end_transaction(5, 1, 2, 13, NOW_MS, aborted=True)
    assert completed is not None
    assert (completed.first_offset, completed.last_offset, completed.aborted) == (10, 13, True)
    assert made.last_stable_offset_after(completed) == 12
    made.high_watermark_moved(13)
    assert made.first_unstable_offset() == 10
    made.high_watermark_moved(14)
    assert made.first_unstable_offset() == 12
    with pytest.raises(InvalidProducerEpoch):
        made.end_transaction(5, 0, 2, 14, NOW_MS, aborted=False)
    # The marker raised the epoch: the next batch begins anew.
    with pytest.raises(OutOfOrderSequence):
        made.check(5, 1, 2, 2, 9)
    assert made.check(5, 1, 0, 0, 9) is None
    assert made.end_transaction(77, 0, 2, 15, NOW_MS, aborted=False) is None
