"""The header: golden bytes, each check with its error, patching."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode
from barnabas.records.builder import build_batch
from barnabas.records.checksum import crc32c
from barnabas.records.compression import Compression
from barnabas.records.errors import CorruptRecord, InvalidRecord, RecordError, UnsupportedRecordFormat
from barnabas.records.record import check_records, iter_records
from barnabas.records.record_batch import (
    HEADER,
    check_batch,
    check_client_batch,
    is_transactional,
    iter_batches,
    length_and_magic,
    patch,
    producer_of,
    read_header,
    stamp_log_append_time,
)
from tests.records.strategies import bounded

GOLDEN = bytes.fromhex(
    "0000000000000007"  # baseOffset 7
    "0000003d"  # batchLength 61: the batch has 73 bytes
    "00000003"  # partitionLeaderEpoch 3
    "02"  # magic
    "e2d860e4"  # crc
    "0000"  # attributes: uncompressed, CreateTime
    "00000000"  # lastOffsetDelta
    "00000000000003e8"  # baseTimestamp 1000
    "00000000000003e8"  # maxTimestamp 1000
    "0000000000000009"  # producerId 9
    "0001"  # producerEpoch 1
    "00000005"  # baseSequence 5
    "00000001"  # recordCount
    "16"  # length 11
    "00"  # attributes
    "00"  # timestampDelta
    "00"  # offsetDelta
    "026b"  # key "k"
    "01"  # value null
    "02"  # one header
    "0268"  # name "h"
    "0278"  # value "x"
)


def one_batch(**options: object) -> bytearray:
    return build_batch([(1000, b"k", b"v", []), (1003, None, b"w", [])], **options)  # type: ignore[arg-type]


def refit(batch: bytearray) -> bytearray:
    """Makes the CRC fit a batch that a test changed."""
    batch[17:21] = crc32c(batch[21:]).to_bytes(4, "big")
    return batch


def test_golden_bytes() -> None:
    batch = build_batch(
        [(1000, b"k", None, [("h", b"x")])],
        base_offset=7, leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=5,
    )  # fmt: skip
    assert batch.hex() == GOLDEN.hex()
    header = check_batch(GOLDEN)
    assert header == (7, 61, 3, 2, 0xE2D860E4, 0, 0, 1000, 1000, 9, 1, 5, 1)
    assert (header.size, header.last_offset, header.next_offset) == (73, 7, 8)
    assert header.compression is Compression.NONE
    assert not (header.is_control)
    assert not (header.is_transactional)
    assert not (header.is_log_append_time)
    assert header.has_producer
    assert header.last_sequence == 5


def test_attributes() -> None:
    header = read_header(one_batch(compression=Compression.LZ4, log_append_time=True, transactional=True, control=True))
    assert header.compression is Compression.LZ4
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.is_control
    assert not header.has_delete_horizon
    assert not header.has_producer
    assert header.last_sequence == -1


def test_sequences_wrap_from_the_largest_int_to_zero() -> None:
    header = read_header(one_batch(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1))
    assert header.last_sequence == 0


def test_iterates_whole_batches_and_ignores_a_truncated_tail() -> None:
    first, second = one_batch(base_offset=0), one_batch(base_offset=2)
    both = bytes(first + second)
    assert [(pos, header.base_offset) for pos, header in iter_batches(both)] == [(0, 0), (len(first), 2)]
    for cut in range(len(first), len(both)):
        assert [pos for pos, _ in iter_batches(memoryview(both)[:cut])] == [0]
    assert [pos for pos, _ in iter_batches(both, len(first))] == [len(first)]
    assert list(iter_batches(b"")) == []


def test_iteration_cannot_be_made_to_stand_still() -> None:
    batch = one_batch()
    for length in (-12, -1, 0, 48):
        struct.pack_into(">i", batch, 8, length)
        with pytest.raises(CorruptRecord):
            list(iter_batches(batch))


def test_every_truncation_is_refused() -> None:
    batch = one_batch()
    for size in range(len(batch)):
        with pytest.raises(CorruptRecord):
            check_batch(memoryview(batch)[:size])
    with pytest.raises(CorruptRecord):
        read_header(batch, len(batch) - 60)


def test_every_flipped_bit_is_noticed() -> None:
    batch = one_batch()
    unprotected = {*range(8), *range(12, 16)}  # baseOffset and partitionLeaderEpoch
    for position in range(len(batch)):
        for bit in range(8):
            broken = bytearray(batch)
            broken[position] ^= 1 << bit
            if position in unprotected:
                check_batch(broken)
            else:
                with pytest.raises(RecordError):
                    check_batch(broken)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_have_their_own_error(magic: int) -> None:
    batch = one_batch()
    batch[16] = magic
    for size in (len(batch), 30):
        with pytest.raises(UnsupportedRecordFormat, match=f"{magic}") as raised:
            check_batch(batch[:size])
        assert raised.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_unknown_magic_is_corrupt() -> None:
    batch = one_batch()
    batch[16] = 3
    with pytest.raises(CorruptRecord, match="3") as raised:
        check_batch(batch)
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("last_offset_delta", "count"), [(-1, 0), (1, 3), (1, -1), (0, 2), (-5, -5)])
def test_impossible_counts(last_offset_delta: int, count: int) -> None:
    batch = one_batch()
    struct.pack_into(">i", batch, 23, last_offset_delta)
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(InvalidRecord) as raised:
        check_batch(refit(batch))
    assert raised.value.code == ErrorCode.INVALID_RECORD


def test_a_batch_that_is_cut_in_the_middle_of_a_buffer() -> None:
    batch = one_batch()
    assert check_batch(b"x" * 50 + bytes(batch), 50).size == len(batch)
    with pytest.raises(CorruptRecord):
        check_batch(b"x" * 50 + bytes(batch[:-1]), 50)


def test_the_producer_is_read_without_the_rest() -> None:
    assert producer_of(one_batch(producer_id=2**40, producer_epoch=3, base_sequence=5)) == (2**40, 3, 5)
    assert producer_of(one_batch()) == (-1, -1, -1)


def test_whether_a_batch_is_transactional_is_read_without_the_rest() -> None:
    in_transaction = one_batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert is_transactional(in_transaction)
    assert not is_transactional(one_batch())
    assert not is_transactional(in_transaction[:60])
    in_transaction[16] = 1  # the magic of a format that has no transactions
    assert not is_transactional(in_transaction)


def test_length_and_magic_are_read_without_the_rest() -> None:
    batch = one_batch()
    assert length_and_magic(batch) == length_and_magic(b"x" * 5 + batch[:17], 5) == (len(batch) - 12, 2)


def test_unknown_codec() -> None:
    batch = one_batch()
    batch[22] = 5
    with pytest.raises(InvalidRecord, match="unknown compression type id 5"):
        check_batch(refit(batch))
    with pytest.raises(InvalidRecord):
        _ = read_header(batch).compression


def test_a_compacted_batch_is_stored_but_not_accepted_from_a_client() -> None:
    batch = bytearray(one_batch(producer_id=4, producer_epoch=0, base_sequence=0)[:61])
    HEADER.pack_into(batch, 0, *read_header(batch)._replace(batch_length=49, record_count=0))
    header = check_batch(refit(batch))
    assert header.next_offset == 2
    assert list(iter_records(batch)) == []
    with pytest.raises(InvalidRecord):
        check_client_batch(header)


@pytest.mark.parametrize(
    "options",
    [
        {"control": True},
        {"producer_id": 0},
        {"producer_id": 3},
        {"producer_id": 3, "producer_epoch": 0},
        {"producer_id": 3, "base_sequence": 0},
        {"transactional": True},
    ],
)
def test_what_clients_may_not_write(options: dict[str, object]) -> None:
    with pytest.raises(InvalidRecord):
        check_client_batch(check_batch(one_batch(**options)))


def test_what_clients_may_write() -> None:
    check_client_batch(check_batch(one_batch()))
    check_client_batch(check_batch(one_batch(producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)))


def test_patching_keeps_the_crc_and_everything_else() -> None:
    pad = b"\xaa" * 5
    buffer = bytearray(pad + one_batch() + pad)
    before = read_header(buffer, 5)
    patch(memoryview(buffer), 5, 12345678901, 42)
    assert check_batch(buffer, 5) == before._replace(base_offset=12345678901, partition_leader_epoch=42)
    assert buffer[:5] == buffer[-5:] == pad
    assert [record.offset for record in iter_records(buffer, 5)] == [12345678901, 12345678902]


def test_log_append_time_stamps_the_batch_and_its_records() -> None:
    buffer = bytearray(b"\0" * 3 + one_batch(compression=Compression.ZSTD) + b"tail")
    stamp_log_append_time(buffer, 3, 777777)
    header = check_batch(buffer, 3)
    assert header.is_log_append_time
    assert header.max_timestamp == 777777
    assert header.base_timestamp == 1000
    assert [record.timestamp for record in check_records(buffer, 3)] == [777777, 777777]


@bounded
@given(st.binary(max_size=200))
def test_noise(data: bytes) -> None:
    with contextlib.suppress(RecordError):
        check_records(data)
