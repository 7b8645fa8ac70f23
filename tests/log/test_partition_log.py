"""PartitionLog: appends, reads, rolls, retention, truncation, and what it refuses."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.disk import OsDisk
from barnabas.log.errors import (
    InvalidProducerEpoch,
    InvalidRecords,
    InvalidTimestamp,
    KafkaStorageError,
    MessageTooLarge,
    OffsetOutOfRange,
    OutOfOrderSequence,
    RecordListTooLarge,
)
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin, PartitionLog
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import iter_records
from barnabas.records.record_batch import CorruptRecord, InvalidRecord, iter_batches, read_header
from tests.log.story import NOW_MS, append, batch, read_all, read_from
from tests.simulation.disk import SimDisk


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


def open_log(disk: SimDisk | None = None, *, clock: Clock | None = None, **settings: object) -> PartitionLog:
    return PartitionLog(
        disk or SimDisk(),
        "/data/orders-0",
        LogConfig(**settings),  # type: ignore[arg-type]
        now_ms=clock or Clock(),
    )


def reopen(log: PartitionLog, disk: SimDisk, *, clean: bool = True) -> PartitionLog:
    log.close(clean=clean)
    return PartitionLog(disk, log.directory, log.config, now_ms=Clock(), clean=clean)


def plain(count: int = 1, *, size: int = 10, timestamp: int = NOW_MS, key: bytes | None = b"k") -> bytearray:
    return build_batch([(timestamp, key, b"v" * size, ()) for _ in range(count)])


# Appending


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


@pytest.mark.parametrize("at", [0, 11, 16, 17, 21, 30, 60, -1])
def test_damaged_batch_is_refused(at: int) -> None:
    log = open_log()
    damaged = plain()
    damaged[at] ^= 0xFF
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(damaged, 0)
    assert caught.value.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
    assert log.log_end_offset == 0


def test_truncated_and_empty_sets_are_refused() -> None:
    log = open_log()
    for data in (bytearray(), plain()[:-1], plain()[:30], plain() + plain()[:-3]):
        with pytest.raises(CorruptRecord):
            log.append_as_leader(data, 0)
    assert log.log_end_offset == 0


def test_client_may_not_set_base_offset_or_write_control_batches() -> None:
    log = open_log()
    with pytest.raises(InvalidRecord, match="baseOffset"):
        log.append_as_leader(build_batch([(NOW_MS, b"k", b"v", ())], base_offset=3), 0)
    marker = build_end_transaction_marker(
        commit=True, coordinator_epoch=0, producer_id=1, producer_epoch=0, timestamp=NOW_MS
    )
    with pytest.raises(InvalidRecord, match="control"):
        log.append_as_leader(marker, 0)
    assert log.append_as_leader(marker, 0, origin=AppendOrigin.COORDINATOR).last_offset == 0


def test_max_message_bytes_and_segment_bytes() -> None:
    log = open_log(max_message_bytes=200, segment_bytes=300)
    with pytest.raises(MessageTooLarge):
        log.append_as_leader(plain(size=200), 0)
    with pytest.raises(RecordListTooLarge):
        log.append_as_leader(plain(size=100) + plain(size=100), 0)
    assert log.append_as_leader(plain(size=200), 0, origin=AppendOrigin.RAFT).last_offset == 0


def test_timestamps_out_of_bounds_name_the_records() -> None:
    log = open_log(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=500)
    records = [(NOW_MS, None, b"", ()), (NOW_MS + 501, None, b"", ()), (NOW_MS - 1001, None, b"", ())]
    with pytest.raises(InvalidTimestamp) as caught:
        log.append_as_leader(build_batch(records), 0)
    assert [index for index, _ in caught.value.record_errors] == [1, 2]
    assert f"[{NOW_MS - 1000}, {NOW_MS + 500}]" in caught.value.record_errors[0][1]
    log.append_as_leader(build_batch([(NOW_MS + 500, None, b"", ()), (NOW_MS - 1000, None, b"", ())]), 0)
    log.append_as_leader(build_batch([(-1, None, b"", ())]), 0)


def test_timestamp_far_ahead_is_refused_by_default() -> None:
    log = open_log()
    with pytest.raises(InvalidTimestamp) as caught:
        log.append_as_leader(plain(timestamp=NOW_MS + 3_600_001), 0)
    assert [index for index, _ in caught.value.record_errors] == [0]
    log.append_as_leader(plain(timestamp=NOW_MS + 3_600_000), 0)
    log.append_as_leader(plain(timestamp=0), 0)


def test_compacted_topic_refuses_keyless_records_by_number() -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    records = [(NOW_MS, b"k", b"", ()), (NOW_MS, None, b"", ()), (NOW_MS, None, b"", ())]
    for compression in Compression:
        with pytest.raises(InvalidRecords) as caught:
            log.append_as_leader(build_batch(records, compression=compression), 0)
        assert caught.value.code == ErrorCode.INVALID_RECORD
        assert [index for index, _ in caught.value.record_errors] == [1, 2]
        assert "Compacted topic cannot accept message without key" in caught.value.record_errors[0][1]
    log.append_as_leader(build_batch(records[:1]), 0)


def test_log_append_time_stamps_the_batch() -> None:
    clock = Clock()
    log = open_log(clock=clock, message_timestamp_type="LogAppendTime")
    clock.ms += 77
    info = log.append_as_leader(plain(2, timestamp=5), 0)
    assert info.log_append_time_ms == info.max_timestamp == NOW_MS + 77
    data = log.read(0, 1000, max_offset=2).read()
    header = read_header(data)
    assert header.is_log_append_time
    assert [r.timestamp for r in iter_records(data)] == [NOW_MS + 77] * 2
    assert read_all(log)  # the CRC holds, or recovery would cut it
    found = log.offset_for_timestamp(NOW_MS + 77)
    assert found is not None
    assert found[:2] == (0, NOW_MS + 77)


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("sent", list(Compression))
def test_compression_type_recompresses(name: str, sent: Compression) -> None:
    log = open_log(compression_type=name)
    records = [(NOW_MS + i, b"k%d" % i, b"v" * 50, (("h", b"1"), ("n", None))) for i in range(5)]
    original = build_batch(records, compression=sent, producer_id=3, producer_epoch=1, base_sequence=0)
    log.append_as_leader(bytearray(original), 0)
    data = log.read(0, 10_000, max_offset=5).read()
    header = read_header(data)
    wanted = Compression.from_name("none" if name == "uncompressed" else name)
    assert header.compression is wanted
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 0)
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in iter_records(data)] == [
        (r.timestamp, r.key, r.value, list(r.headers)) for r in iter_records(original)
    ]
    if sent is wanted:
        assert data[21:] == original[21:]


def test_producers_compression_is_kept_byte_for_byte() -> None:
    log = open_log()
    for compression in Compression:
        original = bytes(batch(log.log_end_offset, compression=compression))
        start = log.log_end_offset
        log.append_as_leader(bytearray(original), 0)
        assert log.read(start, 10_000, max_offset=log.log_end_offset).read()[16:] == original[16:]


# Idempotence


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


# Reading


def test_read_returns_the_whole_batch_that_holds_the_offset() -> None:
    log = open_log()
    for count in (3, 4, 5):
        log.append_as_leader(plain(count), 0)
    for offset in range(12):
        data = log.read(offset, 1, max_offset=12).read()
        [(_, header)] = list(iter_batches(data))
        assert header.base_offset <= offset <= header.last_offset
        assert len(data) == header.size


def test_read_stops_on_batch_borders() -> None:
    log = open_log(index_interval_bytes=200)
    for _ in range(50):
        log.append_as_leader(plain(2), 0)
    size = len(plain(2))
    for max_bytes in range(0, 10 * size, 7):
        found = log.read(10, max_bytes, max_offset=100)
        assert found.size % size == 0
        assert size <= found.size <= max(max_bytes, size)
        assert log.read(10, max_bytes, max_offset=100, min_one=False).size <= max_bytes
    for max_offset in range(10, 100):
        found = log.read(10, 1 << 20, max_offset=max_offset)
        assert found.size == (max_offset - 10) // 2 * size


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


@pytest.mark.parametrize("interval", [0, 100, 4096])
@pytest.mark.parametrize("segment_bytes", [500, 3000, 1 << 30])
def test_every_offset_is_found_with_every_density(interval: int, segment_bytes: int) -> None:
    disk = SimDisk()
    log = open_log(disk, index_interval_bytes=interval, segment_bytes=segment_bytes)
    append(log, 40)
    for _ in range(2):
        for offset in range(80):
            record = next(iter(read_from(log, offset)))
            assert (record.offset, record.key) == (offset, b"key-%d" % offset)
        assert len(read_all(log)) == 80
        log = reopen(log, disk)


def test_slice_offers_a_descriptor_for_sendfile(tmp_path: object) -> None:
    log = PartitionLog(OsDisk(), f"{tmp_path}/orders-0", LogConfig(), now_ms=Clock())
    append(log, 5)
    found = log.read(4, 1000, max_offset=10)
    import os

    assert os.pread(found.fileno(), found.size, found.position) == found.read()
    log.close()


# Timestamps


@pytest.mark.parametrize("compression", list(Compression))
def test_timestamp_lookup_is_exact_inside_batches(compression: Compression) -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=900, index_interval_bytes=100)
    stamps = [NOW_MS + (i * 37) % 101 for i in range(60)]
    for first in range(0, 60, 5):
        records = [(stamp, b"k", b"some value", ()) for stamp in stamps[first : first + 5]]
        log.append_as_leader(build_batch(records, compression=compression), 3)
    for _ in range(2):
        for wanted in range(NOW_MS - 1, NOW_MS + 102):
            offset = next((i for i, stamp in enumerate(stamps) if stamp >= wanted), None)
            found = log.offset_for_timestamp(wanted)
            assert (found.offset if found else None) == offset
            if found is not None and offset is not None:
                assert (found.timestamp, found.leader_epoch) == (stamps[offset], 3)
        latest = log.max_timestamp_offset()
        assert latest is not None
        assert (latest.offset, latest.timestamp) == (stamps.index(max(stamps)), max(stamps))
        log = reopen(log, disk)


def test_timestamp_lookup_respects_the_log_start() -> None:
    log = open_log()
    append(log, 5)
    log.high_watermark = 10
    log.delete_records_before(5)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 5
    assert open_log().offset_for_timestamp(0) is None
    assert open_log().max_timestamp_offset() is None


# Rolling


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


# Retention and DeleteRecords


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


# Epochs and truncation


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


def test_follower_keeps_offsets_and_epochs() -> None:
    leader = open_log(segment_bytes=700)
    append(leader, 10, leader_epoch=1)
    append(leader, 10, leader_epoch=2)
    follower = open_log(segment_bytes=500)
    while follower.log_end_offset < leader.log_end_offset:
        data = leader.read(follower.log_end_offset, 400, max_offset=leader.log_end_offset).read()
        follower.append_as_follower(data + data[:50])
    assert read_all(follower) == read_all(leader)
    assert follower.epoch_entries == leader.epoch_entries
    assert [p.last_sequence for p in follower.producers()] == [p.last_sequence for p in leader.producers()]
    with pytest.raises(CorruptRecord):
        follower.append_as_follower(leader.read(0, 100, max_offset=40).read())


# Transactions


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


# Trouble with the disk


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


def test_short_writes_are_completed() -> None:
    disk = SimDisk(3, short_write_rate=0.7)
    log = open_log(disk, segment_bytes=700)
    append(log, 30)
    assert len(read_all(reopen(log, disk))) == 60


def test_write_that_cannot_be_cut_back_is_cut_before_the_next() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1)
    failing = True

    def fail(call: str, path: str) -> OSError | None:
        if not failing:
            return None
        if call == "pwrite":
            disk.write(disk._files[path], b"half a batch", log.size_in_bytes)
            return OSError(errno.EIO, "gone wrong")
        return OSError(errno.EIO, "gone wrong") if call == "truncate" else None

    disk.on_call = fail
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log, 1)
    failing = False
    append(log, 1)
    assert len(read_all(reopen(log, disk, clean=False))) == 4


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
        fired = disk.calls >= number and disk._fail_at is None
        disk._fail_at = None
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


def test_flush_messages_syncs_before_the_append_returns() -> None:
    disk = SimDisk()
    log = open_log(disk, flush_messages=4)
    append(log, 1)
    assert log.recovery_point == 0
    append(log, 1)
    assert log.recovery_point == 4
    disk.crash()
    assert len(read_all(PartitionLog(disk, log.directory, log.config, now_ms=Clock()))) == 4


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
