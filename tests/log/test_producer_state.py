"""Producers' state and its snapshot files."""

from __future__ import annotations

import pytest

from barnabas.log.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence, TransactionCoordinatorFenced
from barnabas.log.producer_state import MAX_EPOCH, ProducerStateManager
from barnabas.log.producer_state_entry import ProducerStateEntry
from barnabas.simulation.disk import SimDisk

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


def test_the_last_stable_offset_after_the_last_transaction_is_behind_its_marker() -> None:
    made = manager()
    made.update(5, 0, 0, 10, 10, NOW_MS, transactional=True)
    completed = made.end_transaction(5, 0, 2, 13, NOW_MS, aborted=True)
    assert completed is not None
    assert made.last_stable_offset_after(completed) == 14
    made.forget_before(13)
    assert made.first_unstable_offset() == 10
    made.forget_before(14)
    assert made.first_unstable_offset() is None
    assert made.map_end_offset == 14
    made.forget_before(3)
    assert made.map_end_offset == 14


def test_a_coordinators_batch_needs_no_sequence_but_the_newest_epoch_and_its_transaction() -> None:
    made = manager()

    def check(epoch: int, *, transactional: bool) -> None:
        made.check_unsequenced(5, epoch, 11, transactional=transactional, guard=None, must_verify=False)

    check(1, transactional=False)
    made.update(5, 1, -1, 10, 10, NOW_MS, transactional=True)
    check(1, transactional=True)
    with pytest.raises(InvalidTxnState):
        check(1, transactional=False)
    with pytest.raises(InvalidProducerEpoch):
        check(0, transactional=True)
    made.end_transaction(5, 1, 2, 12, NOW_MS, aborted=False)
    check(1, transactional=False)
    with pytest.raises(InvalidTxnState):
        made.check_unsequenced(5, 1, 13, transactional=True, guard=None, must_verify=True)


def test_a_batch_outside_the_producers_open_transaction_is_rejected() -> None:
    made = manager()
    made.update(5, 0, 0, 10, 10, NOW_MS, transactional=True)
    with pytest.raises(InvalidTxnState):
        made.check(5, 0, 1, 1, 11)
    assert made.check(5, 0, 1, 1, 11, transactional=True) is None


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    made = manager()
    made.update(5, 0, 0, 10, 10, NOW_MS)
    made.update(5, 1, 0, 11, 11, NOW_MS)
    assert [batch.last_offset for batch in made.producers[5].batches] == [11]
    made.update(5, 1, 1, 12, 12, NOW_MS)
    assert [batch.last_offset for batch in made.producers[5].batches] == [11, 12]


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "version", "error"),
    [
        (3, 7, 1, None),
        (4, 7, 1, None),
        (2, 7, 1, InvalidProducerEpoch),
        (4, 7, 2, None),
        (3, 7, 2, InvalidProducerEpoch),
        (4, 6, 2, TransactionCoordinatorFenced),
        (4, 8, 2, None),
    ],
)
def test_a_marker_is_checked_by_epoch_and_coordinator(
    epoch: int, coordinator_epoch: int, version: int, error: type[Exception] | None
) -> None:
    made = manager()
    made.update(5, 2, 0, 10, 10, NOW_MS, transactional=True)
    made.end_transaction(5, 3, 7, 11, NOW_MS, aborted=False)
    made.update(5, 3, 0, 12, 12, NOW_MS, transactional=True)
    made.check_marker(99, 0, 0, 13, version)
    if error is None:
        made.check_marker(5, epoch, coordinator_epoch, 13, version)
    else:
        with pytest.raises(error):
            made.check_marker(5, epoch, coordinator_epoch, 13, version)


def test_a_repeated_marker_and_the_last_epoch_are_accepted() -> None:
    made = manager()
    made.update(5, 2, 0, 10, 10, NOW_MS, transactional=True)
    made.end_transaction(5, 3, 7, 11, NOW_MS, aborted=False)
    made.check_marker(5, 3, 7, 12, 2)
    with pytest.raises(InvalidProducerEpoch):
        made.check_marker(5, 2, 7, 12, 2)
    made.update(6, MAX_EPOCH, 0, 12, 12, NOW_MS, transactional=True)
    made.check_marker(6, MAX_EPOCH, 7, 13, 2)


def test_producers_and_verifications_expire_when_they_have_been_silent_for_the_whole_time() -> None:
    made = manager()
    made.update(5, 0, 0, 10, 10, NOW_MS)
    made.update(6, 0, 0, 11, 11, NOW_MS, transactional=True)
    made.begin_verification(7, 0, 0, NOW_MS, supports_epoch_bump=False)
    assert made.expire(NOW_MS + 999) == 0
    assert (set(made.producers), set(made.verifications)) == ({5, 6}, {7})
    assert made.expire(NOW_MS + 1000) == 1
    assert (set(made.producers), set(made.verifications)) == ({6}, set())


def test_snapshots_are_known_in_order() -> None:
    disk = SimDisk()
    made = manager(disk)
    made.found_snapshots([30, 10, 20])
    assert made.snapshots == [10, 20, 30]
    made.map_end_offset = 30
    assert made.take_snapshot() is None
    made.remove_snapshots(lambda offset: offset == 20)
    assert made.snapshots == [10, 30]
    made.update(5, 0, 0, 10, 10, NOW_MS, transactional=True)
    made.clear(40)
    assert (made.snapshots, made.producers, made.map_end_offset) == ([], {}, 40)
    assert made.first_unstable_offset() is None
