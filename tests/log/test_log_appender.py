"""Appends: offsets, producers, followers, full disks."""

from __future__ import annotations

import pytest

from barnabas.log.errors import (
    InvalidProducerEpoch,
    KafkaStorageError,
    OutOfOrderSequence,
)
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.records.builder import build_batch
from barnabas.records.errors import CorruptRecord
from barnabas.records.record_batch import read_header
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import open_log, plain, reopen
from tests.log.story import NOW_MS, append, batch, read_all


def test_append_assigns_offsets_and_epoch_in_place() -> None:
    log = open_log()
    first = batch(0, 3)
    assert log.append_as_leader(first, 5).last_offset == 2
    second = batch(3, 2)
    info = log.append_as_leader(memoryview(second), 5)
    assert (info.base_offset, info.last_offset, info.log_start_offset) == (3, 4, 0)
    assert (info.log_append_time_ms, info.is_duplicate) == (-1, False)
    header = read_header(second)
    assert (header.base_offset, header.partition_leader_epoch) == (3, 5)
    assert log.read(0, 1 << 20, max_offset=5).read() == bytes(first + second)


def test_append_of_several_batches_is_one_write() -> None:
    disk = SimDisk()
    log = open_log(disk)
    writes: list[str] = []
    disk.on_call = lambda call, path: writes.append(path) if call == "pwrite" else None  # type: ignore[func-returns-value]
    info = log.append_as_leader(plain(2) + plain(3) + plain(1), 0, origin=AppendOrigin.RAFT)
    assert (info.base_offset, info.last_offset) == (0, 5)
    assert writes == ["/data/orders-0/00000000000000000000.log"]
    assert [r.offset for r in read_all(log)] == list(range(6))


def test_one_producers_batches_in_one_set_follow_each_other() -> None:
    log = open_log()
    both = batch(0, 2, sequence=0) + batch(2, 2, sequence=2)
    assert log.append_as_leader(both, 0).last_offset == 3
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(4, 1, sequence=4) + batch(5, 1, sequence=9), 0)
    assert log.log_end_offset == 4
    both = batch(4, 2, sequence=4) + batch(6, 2, sequence=6)
    assert log.append_as_leader(both, 0).last_offset == 7


def test_duplicates_of_the_last_five_batches_get_their_first_offsets() -> None:
    log = open_log()
    append(log, 7)
    for sequence in (4, 6, 8, 10, 12):
        info = log.append_as_leader(batch(sequence), 0)
        assert (info.is_duplicate, info.base_offset, info.last_offset) == (True, sequence, sequence + 1)
    assert log.log_end_offset == 14
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(2), 0)


def test_gap_is_refused_and_the_next_batch_accepted() -> None:
    log = open_log()
    append(log, 2)
    with pytest.raises(OutOfOrderSequence) as caught:
        log.append_as_leader(batch(0, sequence=6), 0)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append_as_leader(batch(0, sequence=4), 0)


def test_epochs_fence_and_restart_at_zero() -> None:
    log = open_log()
    append(log, 2)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(0, epoch=1, sequence=4), 0)
    log.append_as_leader(batch(0, epoch=1, sequence=0), 0)
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(batch(0, epoch=0, sequence=4), 0)


def test_unknown_producer_may_begin_anywhere() -> None:
    log = open_log()
    assert log.append_as_leader(batch(0, sequence=1234), 0).base_offset == 0
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(0, sequence=1234 + 3), 0)


def test_sequence_wraps_to_zero() -> None:
    log = open_log()
    log.append_as_leader(batch(0, 4, sequence=2**31 - 2), 0)
    assert log.producers()[0].last_sequence == 1
    log.append_as_leader(batch(0, sequence=2), 0)
    again = log.append_as_leader(batch(0, 4, sequence=2**31 - 2), 0)
    assert (again.is_duplicate, again.base_offset) == (True, 0)


def test_follower_keeps_offsets_and_epochs() -> None:
    leader = open_log(segment_bytes=700)
    append(leader, 10, leader_epoch=1)
    append(leader, 10, leader_epoch=2)
    follower = open_log(segment_bytes=500)
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(follower.log_end_offset, 400, max_offset=leader.log_end_offset).read()
        follower.append_as_follower(data + data[:50], 2)
    assert read_all(follower) == read_all(leader)
    assert follower.epoch_entries == leader.epoch_entries
    assert [p.last_sequence for p in follower.producers()] == [p.last_sequence for p in leader.producers()]
    with pytest.raises(CorruptRecord):
        follower.append_as_follower(leader.read(0, 100, max_offset=40).read(), 2)


def test_full_disk_refuses_and_loses_nothing() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=1 << 20)
    append(log, 3)
    disk.capacity = disk.used + 20
    for _ in range(3):
        with pytest.raises(KafkaStorageError) as caught:
            append(log, 1)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 6
    assert len(read_all(log)) == 6
    assert disk.used <= disk.capacity
    disk.capacity = None
    append(log, 2)
    assert [r.offset for r in read_all(log)] == list(range(10))
    assert len(read_all(reopen(log, disk, clean=False))) == 10


def test_full_disk_refuses_a_roll_and_goes_on_later() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=300)
    append(log, 2)
    disk.capacity = disk.used
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            append(log, 1)
    disk.capacity = None
    append(log, 5)
    assert [r.offset for r in read_all(log)] == list(range(14))
    assert len(read_all(reopen(log, disk, clean=False))) == 14


def test_a_duplicate_is_synced_as_flush_messages_promises() -> None:
    disk = SimDisk()
    open_log(disk).append_as_leader(batch(0), 0)
    again = open_log(disk, flush_messages=1)
    assert (again.recovery_point, again.log_end_offset) == (0, 2)
    assert again.append_as_leader(batch(0), 0).is_duplicate
    assert again.recovery_point == 2


@pytest.mark.parametrize(("flush_messages", "recovery_point"), [(2, 2), (3, 0)])
def test_an_append_is_synced_when_flush_messages_are_unsynced(flush_messages: int, recovery_point: int) -> None:
    log = open_log(flush_messages=flush_messages)
    log.append_as_leader(plain(2), 0)
    assert log.recovery_point == recovery_point


def test_an_append_tells_its_offsets_and_largest_timestamp() -> None:
    log = open_log()
    log.append_as_leader(plain(2), 0)
    log.high_watermark = 2
    log.delete_records_before(1)
    info = log.append_as_leader(plain(timestamp=NOW_MS + 5) + plain(2), 0, origin=AppendOrigin.COORDINATOR)
    assert (info.base_offset, info.last_offset, info.log_start_offset) == (2, 4, 1)
    assert (info.max_timestamp, info.log_append_time_ms, info.is_duplicate) == (NOW_MS + 5, -1, False)
    stored = log.read(2, 10_000, max_offset=5).read()
    follower = open_log()
    follower.truncate_fully_and_start_at(2)
    info = follower.append_as_follower(stored, 0)
    assert (info.base_offset, info.last_offset, info.log_start_offset) == (2, 4, 2)
    assert info.max_timestamp == NOW_MS + 5


def test_a_follower_leaves_out_a_truncated_batch_and_rejects_one_below_its_end() -> None:
    leader = open_log()
    for _ in range(2):
        leader.append_as_leader(plain(2), 0)
    stored = leader.read(0, 10_000, max_offset=4).read()
    size = len(plain(2))
    follower = open_log()
    for cut in (0, 11, 16, 17, 60, size - 1):
        info = follower.append_as_follower(stored[:cut], 0)
        assert (info.base_offset, info.last_offset, info.max_timestamp) == (0, -1, -1)
    assert follower.append_as_follower(stored[: 2 * size - 1], 0).last_offset == 1
    with pytest.raises(CorruptRecord, match="below the next offset"):
        follower.append_as_follower(stored, 0)
    assert follower.append_as_follower(stored[size:], 0).base_offset == 2


def test_a_follower_learns_the_epochs_from_the_batches() -> None:
    leader = open_log()
    for epoch in (3, 3, 5):
        leader.append_as_leader(plain(), epoch)
    follower = open_log()
    follower.append_as_follower(leader.read(0, 10_000, max_offset=3).read(), 5)
    assert follower.epoch_entries == leader.epoch_entries == [(3, 0), (5, 2)]


def of_epochs(first: int, *epochs: int) -> bytes:
    return b"".join(
        build_batch([(NOW_MS, b"k", b"v", ())], base_offset=first + index, leader_epoch=epoch)
        for index, epoch in enumerate(epochs)
    )


def test_a_follower_leaves_out_batches_of_epochs_above_that_of_its_fetch() -> None:
    """KAFKA-18723: the leader has stepped down and truncated its file while it was sent."""
    follower = open_log()
    info = follower.append_as_follower(of_epochs(0, 2, 3, 4, 3), 3)
    assert (info.base_offset, info.last_offset, follower.log_end_offset) == (0, 1, 2)
    assert follower.epoch_entries == [(2, 0), (3, 1)]
    info = follower.append_as_follower(of_epochs(2, 4), 3)
    assert (info.base_offset, info.last_offset, follower.log_end_offset) == (2, 1, 2)
    assert follower.append_as_follower(of_epochs(2, 4), 4).last_offset == 2


def test_a_follower_rejects_an_epoch_below_that_of_the_batch_before() -> None:
    follower = open_log()
    with pytest.raises(CorruptRecord, match="leader epoch 1 at offset 1"):
        follower.append_as_follower(of_epochs(0, 2, 1), 3)
    assert follower.log_end_offset == 0
    follower.append_as_follower(of_epochs(0, 2), 3)
    with pytest.raises(CorruptRecord, match="below epoch 2"):
        follower.append_as_follower(of_epochs(1, 1, 3), 3)
    assert follower.append_as_follower(of_epochs(1, -1, 2, 3), 3).last_offset == 3
    assert follower.epoch_entries == [(2, 0), (3, 3)]


def test_a_follower_forgets_the_epoch_in_which_it_led_and_wrote_nothing() -> None:
    """The new leader may have older batches, which this replica has never seen."""
    disk = SimDisk()
    follower = open_log(disk)
    follower.append_as_follower(of_epochs(0, 4), 4)
    follower.begin_epoch(5)
    assert follower.epoch_entries == [(4, 0), (5, 1)]
    fetching = open_log(disk.copy())
    fetching.begin_epoch(5)
    fetching.append_as_follower(of_epochs(1, 4, 6), 6)
    assert fetching.epoch_entries == [(4, 0), (6, 2)]
    assert not follower.truncate_to(1)
    assert follower.epoch_entries == [(4, 0)]
    assert reopen(follower, disk).epoch_entries == [(4, 0)]


def test_the_first_append_of_an_epoch_writes_its_file_and_the_beginning_does_not() -> None:
    disk = SimDisk()
    log = open_log(disk)
    written: list[str] = []
    disk.on_call = lambda call, path: written.append(f"{call} {path.rpartition('/')[2]}")  # type: ignore[func-returns-value]
    log.begin_epoch(3)
    assert (log.epoch_entries, written) == ([(3, 0)], [])
    assert open_log(disk.copy()).epoch_entries == [], "nothing was written in it"
    append(log, 1, leader_epoch=3)
    first = [each for each in written if "leader-epoch-checkpoint" in each or "pwrite" in each]
    assert first[-1] == "pwrite 00000000000000000000.log"
    assert any("leader-epoch-checkpoint" in each for each in first[:-1]), "the file is there before the records"
    assert open_log(disk.copy()).epoch_entries == [(3, 0)]
    written.clear()
    append(log, 1, leader_epoch=3)
    assert written == ["pwrite 00000000000000000000.log"]


def test_a_closed_log_rejects_appends() -> None:
    log = open_log()
    log.close()
    for append_one in (lambda: log.append_as_leader(plain(), 0), lambda: log.append_as_follower(plain(), 0)):
        with pytest.raises(KafkaStorageError, match="closed"):
            append_one()


def test_a_coordinators_set_may_repeat_a_producer_without_sequences() -> None:
    log = open_log()
    unsequenced = build_batch([(NOW_MS, b"k", b"v", ())], producer_id=5, producer_epoch=0)
    info = log.append_as_leader(unsequenced + unsequenced, 0, origin=AppendOrigin.COORDINATOR)
    assert (info.base_offset, info.last_offset) == (0, 1)


def test_rolling_an_empty_log_does_nothing() -> None:
    log = open_log()
    log.roll()
    assert log.segment_count == 1
    log.append_as_leader(plain(), 0)
    log.roll()
    log.roll()
    assert log.segment_count == 2
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_behind_a_batch_that_the_disk_did_not_take_there_is_no_gap() -> None:
    """Five batches of a producer are under way; those behind the first must wait for it, and not look like lost ones."""
    disk = SimDisk()
    log = open_log(disk, segment_bytes=1 << 20)
    log.append_as_leader(batch(0, 1, sequence=0), 0)
    disk.capacity = disk.used
    with pytest.raises(KafkaStorageError):
        log.append_as_leader(batch(1, 1, sequence=1), 0)
    disk.capacity = None
    with pytest.raises(KafkaStorageError, match="the disk did not take the batch of producer 7 before this one"):
        log.append_as_leader(batch(2, 1, sequence=2), 0)
    log.append_as_leader(batch(1, 1, sequence=0, producer_id=8), 0)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(2, 1, sequence=2, producer_id=8), 0)
    log.append_as_leader(batch(1, 1, sequence=1), 0)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(2, 1, sequence=3), 0)
