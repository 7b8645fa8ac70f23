"""Records: round trips, agreement with other implementations, hostile layouts."""

import contextlib

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from barnabas.records.builder import RecordFields, build_batch
from barnabas.records.checksum import crc32c
from barnabas.records.compression import Compression
from barnabas.records.errors import CorruptRecord, InvalidRecord, RecordError
from barnabas.records.record import Record, check_records, iter_records
from barnabas.records.record_batch import BATCH_OVERHEAD, HEADER, read_header
from tests.records import strategies
from tests.records.strategies import bounded


@bounded
@given(strategies.records, strategies.codecs, st.integers(0, 2**60), st.booleans())
def test_round_trip(records: list[RecordFields], codec: Compression, base_offset: int, append_time: bool) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=codec, log_append_time=append_time)
    largest = max(timestamp for timestamp, *_ in records)
    assert read_header(batch).max_timestamp == largest
    assert check_records(batch) == [
        Record(base_offset + index, largest if append_time else timestamp, key, value, list(headers))
        for index, (timestamp, key, value, headers) in enumerate(records)
    ]


def their_batches(builder: object, records: list[RecordFields]) -> bytes:
    for index, (timestamp, key, value, headers) in enumerate(records):
        assert builder.append(index, timestamp, key, value, list(headers))  # type: ignore[attr-defined]
    return bytes(builder.build())  # type: ignore[attr-defined]


@bounded
@given(strategies.records, st.sampled_from([(-1, -1, -1), (77, 3, 5)]), st.booleans())
def test_same_bytes_as_kafka_python_and_aiokafka(
    records: list[RecordFields], producer: tuple[int, int, int], transactional: bool
) -> None:
    producer_id, producer_epoch, base_sequence = producer
    ours = build_batch(
        records,
        leader_epoch=-1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    options = {
        "magic": 2,
        "compression_type": 0,
        "is_transactional": transactional,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "batch_size": 1 << 20,
    }
    for builder in (DefaultRecordBatchBuilder(**options), AiokafkaBuilder(**options)):
        theirs = bytearray(their_batches(builder, records))
        # They leave the leader epoch, which the CRC does not cover, at 0 or -1: the leader sets it.
        theirs[12:16] = ours[12:16]
        assert bytes(theirs) == bytes(ours)


@bounded
@given(strategies.records, strategies.codecs)
def test_kafka_python_and_aiokafka_read_ours(records: list[RecordFields], codec: Compression) -> None:
    batch = bytes(build_batch(records, compression=codec))
    for reader in (DefaultRecordBatch(batch), AiokafkaBatch(batch)):
        assert reader.validate_crc()
        found = [(record.timestamp, record.key, record.value, list(record.headers)) for record in reader]
        assert found == [(timestamp, key, value, list(headers)) for timestamp, key, value, headers in records]


@bounded
@given(strategies.records, strategies.codecs)
def test_reads_theirs(records: list[RecordFields], codec: Compression) -> None:
    for builder_class in (DefaultRecordBatchBuilder, AiokafkaBuilder):
        builder = builder_class(
            magic=2, compression_type=int(codec), is_transactional=False, producer_id=-1, producer_epoch=-1,
            base_sequence=-1, batch_size=1 << 20,
        )  # fmt: skip
        theirs = their_batches(builder, records)
        found = [tuple(record)[1:] for record in check_records(theirs)]
        assert found == [(timestamp, key, value, list(headers)) for timestamp, key, value, headers in records]


def test_reads_from_a_view_in_the_middle_of_a_buffer() -> None:
    batch = build_batch([(5, b"k", b"v", [])], base_offset=9)
    assert list(iter_records(memoryview(b"xyz" + batch + b"tail"), 3)) == [Record(9, 5, b"k", b"v", [])]


@pytest.mark.parametrize("size", strategies.SIZES)
def test_fields_of_each_size(size: int) -> None:
    field = b"x" * size
    record = (5, field, field, [("n" * size, field)])
    (read,) = check_records(build_batch([record]))
    assert (read.timestamp, read.key, read.value, read.headers) == record
    assert check_records(build_batch([(5, None, field, [])]))[0].value == field
    assert check_records(build_batch([(5, field, None, [])]))[0].key == field


@pytest.mark.parametrize("delta", [0, 63, 64, -64, -65, 8191, 8192, 2**31, -(2**31), 2**61])
def test_timestamps_far_apart(delta: int) -> None:
    records = [(2**61, b"k", b"v", []), (2**61 + delta, b"k", b"v", [])]
    assert [record.timestamp for record in check_records(build_batch(records))] == [2**61, 2**61 + delta]


def test_more_records_than_a_varint_of_one_byte_counts() -> None:
    assert [record.offset for record in check_records(build_batch([(0, None, b"v", [])] * 200))] == list(range(200))


def test_gaps_left_by_compaction_are_kept() -> None:
    # Records with offset deltas 1 and 3 of an originally five records long batch.
    body = bytes.fromhex("0c0000020101" + "00") + bytes.fromhex("0c0000060101" + "00")
    batch = raw_batch(body, count=2, last_offset_delta=4)
    assert [record.offset for record in iter_records(batch)] == [101, 103]


def raw_batch(body: bytes, *, count: int, last_offset_delta: int | None = None, codec: int = 0) -> bytearray:
    batch = bytearray(BATCH_OVERHEAD) + body
    delta = count - 1 if last_offset_delta is None else last_offset_delta
    HEADER.pack_into(batch, 0, 100, len(batch) - 12, 0, 2, 0, codec, delta, 0, 0, -1, -1, -1, count)
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return batch


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("nothing", ""),
        ("length negative", "01 00 00 00 01 01 00"),
        ("length minus eight and six bytes of fields", "0f 00 00 00 01 01 00"),
        ("length past the end", "7e 00 00 00 01 01 00"),
        ("length too short for the fields", "08 00 00 00 01 01 00"),
        ("length too long for the fields", "0e 00 00 00 01 01 00 00"),
        ("key past the record", "0c 00 00 00 0a 01 00"),
        ("value past the record", "0c 00 00 00 01 0a 00"),
        ("negative count of headers", "0c 00 00 00 01 01 01"),
        ("more headers than bytes", "0c 00 00 00 01 01 7e"),
        ("header name null", "10 00 00 00 01 01 02 01 01"),
        ("header name past the record", "10 00 00 00 01 01 02 0e 01"),
        ("header name not UTF-8", "12 00 00 00 01 01 02 02 ff 01"),
        ("header value just past the record", "12 00 00 00 01 01 02 02 61 02"),
        ("key varint of six bytes", "16 00 00 00 ff ff ff ff ff 01 01 00"),
        ("value varint of six bytes", "16 00 00 00 01 ff ff ff ff ff 01 00"),
        ("offset varint of six bytes", "16 00 00 80 80 80 80 80 00 01 01 00"),
        ("header value past the record", "12 00 00 00 01 01 02 02 61 0a"),
        ("offset delta negative", "0c 00 00 01 01 01 00"),
        ("offset delta above the last", "0c 00 00 02 01 01 00"),
        ("varint of six bytes", "ff ff ff ff ff 01 00 00 00"),
        ("varint above 32 bits", "ff ff ff ff 7f 00 00 00"),
        ("varlong of eleven bytes", "2c 00 80 80 80 80 80 80 80 80 80 80 00 00 01 01 00 00 00 00 00 00 00"),
        ("bytes after the last record", "0c 00 00 00 01 01 00 00"),
        ("cut inside a varint", "80"),
    ],
    ids=lambda value: value.replace(" ", "_") if value[:1].isalpha() else "",
)
def test_layouts_that_break_a_rule(what: str, body: str) -> None:
    with pytest.raises(InvalidRecord):
        check_records(raw_batch(bytes.fromhex(body), count=1))


def test_a_valid_twin_of_the_broken_layouts() -> None:
    assert check_records(raw_batch(bytes.fromhex("0c000000010100"), count=1)) == [Record(100, 0, None, None, [])]


def test_a_varint_may_have_five_bytes_and_a_varlong_ten() -> None:
    five, ten = "80" * 4 + "00", "80" * 9 + "00"
    assert check_records(raw_batch(bytes.fromhex(f"14 00 00 {five} 01 01 00"), count=1))[0].offset == 100
    assert check_records(raw_batch(bytes.fromhex(f"1e 00 {ten} 00 01 01 00"), count=1))[0].timestamp == 0


def test_a_wrong_checksum_is_refused_before_any_record_is_read() -> None:
    batch = build_batch([(1, b"k", b"v", [])])
    batch[17] ^= 1
    with pytest.raises(CorruptRecord):
        check_records(batch)


def test_no_headers_may_be_counted_in_two_bytes() -> None:
    assert check_records(raw_batch(bytes.fromhex("0e0000000101 8000"), count=1)) == [Record(100, 0, None, None, [])]


def test_offset_deltas_must_grow() -> None:
    with pytest.raises(InvalidRecord, match="offset delta 0 after 0"):
        check_records(raw_batch(bytes.fromhex("0c000000010100") * 2, count=2))


def test_a_huge_count_costs_nothing() -> None:
    with pytest.raises(InvalidRecord):
        check_records(raw_batch(bytes.fromhex("0c000000010100"), count=2**31 - 1))


def test_a_bomb_inside_a_batch() -> None:
    batch = build_batch([(1, None, bytes(10_000_000), [])], compression=Compression.ZSTD)
    with pytest.raises(CorruptRecord):
        check_records(batch, max_bytes=1_000_000)


@bounded
@given(strategies.records, strategies.codecs, st.integers(0, 10**6), st.integers(1, 255))
def test_changed_bytes_behind_a_fitting_crc(
    records: list[RecordFields], codec: Compression, position: int, mask: int
) -> None:
    batch = build_batch(records, compression=codec)
    batch[21 + position % (len(batch) - 21)] ^= mask
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    with contextlib.suppress(RecordError):
        check_records(batch, max_bytes=1 << 20)
