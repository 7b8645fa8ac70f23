"""PartitionLog: reads, idempotence, truncation, transactions, watermarks, and trouble with the disk."""

from __future__ import annotations

import pytest

from barnabas.log.errors import (
    KafkaStorageError,
    MessageTooLarge,
    OffsetOutOfRange,
    OutOfOrderSequence,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin, PartitionLog
from barnabas.records.control import build_end_transaction_marker
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock, open_log, plain, reopen
from tests.log.story import NOW_MS, append, batch, read_all, read_from


@pytest.mark.parametrize("clean", [True, False])
def test_all_five_batches_survive_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 9)
    log = reopen(log, disk, clean=clean)
    for sequence in (8, 10, 12, 14, 16):
        assert log.append_as_leader(batch(sequence), 0).base_offset == sequence
    append(log, 1)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(batch(0, sequence=30), 0)


def test_silent_producers_expire() -> None:
    clock = Clock()
    log = open_log(clock=clock, producer_id_expiration_ms=1000)
    append(log, 1)
    clock.ms += 999
    assert log.expire_producers() == 0
    clock.ms += 10
    assert log.expire_producers() == 1
    assert log.producers() == []
    log.append_as_leader(batch(0, sequence=99, timestamp=clock.ms), 0)


def test_read_outside_the_log() -> None:
    log = open_log()
    append(log, 3)
    assert log.read(6, 100, max_offset=6).size == 0
    assert log.read(6, 100, max_offset=6).read() == b""
    for offset in (7, -1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, max_offset=6)
    log.high_watermark = 6
    log.delete_records_before(3)
    with pytest.raises(OffsetOutOfRange):
        log.read(2, 100, max_offset=6)
    assert [r.offset for r in read_from(log, 3)] == [3, 4, 5]


def test_delete_records_moves_the_start_and_frees_segments() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=300)
    append(log, 8)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(1)
    log.high_watermark = 16
    assert log.delete_records_before(9) == 9
    assert log.delete_records_before(5) == 9
    assert log.log_start_is_inside_a_segment
    assert log.apply_retention() == 1
    assert log.log_start_offset == 9
    assert [r.offset for r in read_all(log)] == list(range(9, 16))


def test_end_offset_for_epoch() -> None:
    log = open_log()
    append(log, 2, leader_epoch=1)
    append(log, 3, leader_epoch=4)
    assert log.epoch_entries == [(1, 0), (4, 4)]
    assert log.latest_epoch == 4
    assert [log.end_offset_for_epoch(epoch) for epoch in (-1, 0, 1, 2, 3, 4, 5)] == [
        (-1, -1),
        (0, 0),
        (1, 4),
        (1, 4),
        (1, 4),
        (4, 10),
        (-1, -1),
    ]
    assert [log.epoch_for_offset(offset) for offset in (0, 3, 4, 9)] == [1, 1, 4, 4]


@pytest.mark.parametrize("clean", [True, False])
def test_epochs_survive_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 2, leader_epoch=1)
    append(log, 3, leader_epoch=4)
    assert reopen(log, disk, clean=clean).epoch_entries == [(1, 0), (4, 4)]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("offset", [0, 1, 2, 7, 12, 13, 24, 39, 40])
def test_truncate_to(offset: int, clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=700, index_interval_bytes=100)
    append(log, 10, leader_epoch=1)
    append(log, 10, leader_epoch=2)
    log.flush()
    log.high_watermark = 40
    kept = offset // 2 * 2
    assert log.truncate_to(offset) is (offset < 40)
    for _ in range(2):
        assert log.log_end_offset == kept
        assert [r.offset for r in read_all(log)] == list(range(kept))
        assert log.high_watermark <= kept
        assert log.recovery_point <= kept
        assert log.latest_epoch == (2 if kept > 20 else 1 if kept else -1)
        log = reopen(log, disk, clean=clean)
    log.append_as_leader(batch(kept, 1), 3)
    assert len(read_all(log)) == kept + 1


def test_truncate_fully_and_start_at() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=700)
    append(log, 20)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.segment_count) == (100, 100, 1)
    assert log.producers() == []
    append(log, 2)
    log = reopen(log, disk)
    assert [r.offset for r in read_all(log)] == [100, 101, 102, 103]


def marker(producer_id: int, *, commit: bool) -> bytearray:
    return build_end_transaction_marker(
        commit=commit, coordinator_epoch=1, producer_id=producer_id, producer_epoch=0, timestamp=NOW_MS
    )


def test_last_stable_offset_and_aborted_transactions() -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=500)
    log.append_as_leader(batch(0, 2, producer_id=1, sequence=0, transactional=True), 0)
    log.append_as_leader(batch(2, 2, producer_id=2, sequence=0, transactional=True), 0)
    log.append_as_leader(plain(2), 0)
    log.high_watermark = 6
    assert log.last_stable_offset == 0
    log.append_as_leader(marker(1, commit=False), 0, origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 0  # the marker is above the high watermark
    log.high_watermark = 7
    assert log.last_stable_offset == 2
    log.append_as_leader(marker(2, commit=True), 0, origin=AppendOrigin.COORDINATOR)
    log.high_watermark = 8
    assert log.last_stable_offset == 8
    [aborted] = log.aborted_transactions(0, 8)
    assert tuple(aborted) == (1, 0, 6, 2)
    assert log.aborted_transactions(7, 8) == []
    for clean in (True, False):
        log = reopen(log, disk, clean=clean)
        log.high_watermark = 8
        assert log.last_stable_offset == 8
        assert [tuple(found) for found in log.aborted_transactions(0, 8)] == [(1, 0, 6, 2)]


@pytest.mark.parametrize("clean", [True, False])
def test_open_transaction_survives_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1)
    log.append_as_leader(batch(2, 2, producer_id=1, sequence=0, transactional=True), 0)
    log = reopen(log, disk, clean=clean)
    log.high_watermark = 4
    assert log.last_stable_offset == 2
    log.append_as_leader(marker(1, commit=True), 0, origin=AppendOrigin.COORDINATOR)
    log.high_watermark = 5
    assert log.last_stable_offset == 5


@pytest.mark.slow
def test_any_failing_disk_call_leaves_a_log_that_goes_on() -> None:
    """Fails each single disk call of a run; appends that reported success are never lost."""
    number = 1
    while True:
        disk = SimDisk()
        log = open_log(disk, segment_bytes=500, index_interval_bytes=100)
        disk.fail_call(number)
        acknowledged = 0
        for _ in range(12):
            try:
                append(log, 1, leader_epoch=1)
            except KafkaStorageError:
                continue
            acknowledged = log.log_end_offset
        fired = not disk.fail_no_call() and disk.calls >= number
        if log._flusher.failure is None:
            append(log, 2, leader_epoch=2)
            acknowledged = log.log_end_offset
        records = read_all(log)
        assert [r.offset for r in records] == list(range(acknowledged))
        again = PartitionLog(disk.copy(), log.directory, log.config, now_ms=Clock())
        assert read_all(again) == records
        if not fired:
            break
        number += 1
    assert number > 30


def test_settings_change_at_once() -> None:
    log = open_log()
    append(log, 1)
    log.reconfigure(LogConfig(max_message_bytes=70, segment_bytes=1000))
    with pytest.raises(MessageTooLarge):
        append(log, 1)


def test_repr_is_worth_reading() -> None:
    log = open_log()
    append(log, 1)
    assert repr(log) == "<PartitionLog orders-0 0..2 hw=0 segments=1>"


@pytest.mark.parametrize(("checkpoint", "expected"), [(0, 3), (2, 3), (3, 3), (4, 4), (6, 6), (99, 6)])
def test_the_high_watermark_of_a_checkpoint_is_kept_between_the_log_start_and_its_end(
    checkpoint: int, expected: int
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 3)
    log.close()
    again = PartitionLog(
        disk, log.directory, log.config, now_ms=Clock(), clean=True, log_start_offset=3, high_watermark=checkpoint
    )
    assert (again.log_start_offset, again.high_watermark, again.log_end_offset) == (3, expected, 6)


def test_a_cut_moves_watermark_start_and_recovery_point_back_to_the_end() -> None:
    log = open_log()
    append(log, 4)
    log.flush()
    log.high_watermark = 8
    log.delete_records_before(7)
    assert log.recovery_point == 8
    assert log.truncate_to(4)
    assert (log.log_start_offset, log.high_watermark, log.recovery_point, log.log_end_offset) == (4, 4, 4, 4)
    assert not log.truncate_to(4)
    append(log, 2)
    log.high_watermark = 5
    assert log.truncate_to(6)
    assert (log.high_watermark, log.log_end_offset) == (5, 6)


def test_records_are_deleted_up_to_the_high_watermark_and_never_restored() -> None:
    log = open_log()
    append(log, 3)
    log.high_watermark = 4
    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(5)
    assert log.delete_records_before(4) == 4
    assert log.delete_records_before(2) == 4
    assert (log.log_start_offset, log.high_watermark) == (4, 4)


def test_the_last_stable_offset_waits_for_the_watermark_to_pass_the_marker() -> None:
    log = open_log()
    log.append_as_leader(batch(0, transactional=True), 0)
    log.high_watermark = 2
    assert (log.first_unstable_offset, log.last_stable_offset) == (0, 0)
    marker = build_end_transaction_marker(
        commit=True, coordinator_epoch=0, producer_id=7, producer_epoch=0, timestamp=NOW_MS
    )
    log.append_as_leader(marker, 0, origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 0
    log.high_watermark = 3
    assert (log.first_unstable_offset, log.last_stable_offset) == (None, 3)
