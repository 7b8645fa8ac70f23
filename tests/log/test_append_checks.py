"""What a leader asks of a set of batches."""

from __future__ import annotations

import pytest

from barnabas.log.errors import (
    InvalidRecords,
    InvalidTimestamp,
    MessageTooLarge,
    RecordListTooLarge,
)
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.batch_filter import empty_batch
from barnabas.records.builder import build_batch
from barnabas.records.checksum import crc32c
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.errors import CorruptRecord, InvalidRecord
from barnabas.records.record import iter_records
from barnabas.records.record_batch import HEADER, iter_batches, read_header
from tests.log.small_log import Clock, open_log, plain
from tests.log.story import NOW_MS, batch, read_all


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


def test_only_batches_of_another_codec_are_compressed_again() -> None:
    log = open_log(compression_type="gzip")
    values = [(NOW_MS, b"k", b"v" * 50, ())]
    sent = [build_batch(values, compression=codec) for codec in (Compression.NONE, Compression.GZIP, Compression.LZ4)]
    log.append_as_leader(sent[0] + sent[1] + sent[2], 0, origin=AppendOrigin.COORDINATOR)
    stored = log.read(0, 10_000, max_offset=3).read()
    assert [header.compression for _, header in iter_batches(stored)] == [Compression.GZIP] * 3
    assert stored[len(sent[1]) : 2 * len(sent[1])][21:] == sent[1][21:]
    assert [record.offset for record in read_all(log)] == [0, 1, 2]


def test_a_batch_that_grows_over_max_message_bytes_when_compressed_again_is_rejected() -> None:
    sent = build_batch([(NOW_MS, b"k", b"v" * 500, ())], compression=Compression.GZIP)
    log = open_log(compression_type="uncompressed", max_message_bytes=len(sent))
    with pytest.raises(MessageTooLarge):
        log.append_as_leader(sent, 0)
    assert log.log_end_offset == 0


def test_max_message_bytes_is_the_largest_size_allowed() -> None:
    size = len(plain())
    open_log(max_message_bytes=size).append_as_leader(plain(), 0)
    with pytest.raises(MessageTooLarge):
        open_log(max_message_bytes=size - 1).append_as_leader(plain(), 0)
    open_log(segment_bytes=size).append_as_leader(plain(), 0)
    with pytest.raises(RecordListTooLarge):
        open_log(segment_bytes=size - 1).append_as_leader(plain(), 0)


@pytest.mark.parametrize("field", ["base_timestamp", "max_timestamp"])
def test_each_timestamp_of_the_header_must_be_within_bounds(field: str) -> None:
    log = open_log()
    sent = plain()
    header = read_header(sent)._replace(**{field: NOW_MS + 3_600_001})
    HEADER.pack_into(sent, 0, *header)
    sent[17:21] = crc32c(sent[21:]).to_bytes(4, "big")
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(sent, 0)


def test_log_append_time_keeps_a_transaction_open() -> None:
    log = open_log(message_timestamp_type="LogAppendTime")
    log.append_as_leader(batch(0, transactional=True), 0)
    log.high_watermark = 2
    assert log.last_stable_offset == 0


def test_a_client_may_not_say_log_append_time_and_a_batch_without_records_is_rejected() -> None:
    log = open_log()
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(build_batch([(NOW_MS, b"k", b"v", ())], log_append_time=True), 0)
    with pytest.raises(InvalidRecord):
        log.append_as_leader(empty_batch(read_header(plain())), 0)
    assert log.log_end_offset == 0


def test_a_compacted_topic_checks_keys_with_log_append_time_too_but_not_timestamps() -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}), message_timestamp_type="LogAppendTime")
    log.append_as_leader(plain(timestamp=NOW_MS + 10**9), 0)
    with pytest.raises(InvalidRecords):
        log.append_as_leader(plain(key=None), 0)


def test_the_error_shows_the_first_three_records() -> None:
    log = open_log(cleanup_policy=frozenset({"compact"}))
    with pytest.raises(InvalidRecords) as caught:
        log.append_as_leader(plain(4, key=None), 0)
    assert len(caught.value.record_errors) == 4
    assert caught.value.message.count("batchIndex=") == 3
    assert "due to 4 record errors" in caught.value.message
