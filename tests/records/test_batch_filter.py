"""Batches with fewer records: what stays is what it was, to the last header and timestamp."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch_filter import empty_batch, record_spans, rewrite_batch
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import check_records, records_bytes
from barnabas.records.record_batch import BatchHeader, check_batch, stamp_log_append_time
from tests.records.strategies import SIZES

RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2**41),
        st.one_of(st.none(), st.binary(max_size=200)),
        st.one_of(st.none(), st.binary(max_size=200)),
        st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=2),
    ),
    min_size=1,
    max_size=12,
)


def spans_of(batch: bytes | bytearray) -> tuple[BatchHeader, bytes | bytearray, list]:  # type: ignore[type-arg]
    header = check_batch(batch)
    data = records_bytes(batch, 0, header)
    return header, data, list(record_spans(data, header))


@given(RECORDS, st.sampled_from(list(Compression)))
def test_spans_see_what_the_decoder_sees(records: list, codec: Compression) -> None:  # type: ignore[type-arg]
    batch = build_batch(records, base_offset=70, compression=codec)
    _, data, spans = spans_of(batch)
    decoded = check_records(batch)
    assert [(s.offset, s.timestamp, s.key, s.has_value) for s in spans] == [
        (r.offset, r.timestamp, r.key, r.value is not None) for r in decoded
    ]
    assert b"".join(bytes(data[s.start : s.end]) for s in spans) == data


@pytest.mark.parametrize("size", SIZES)
def test_spans_of_fields_of_each_size(size: int) -> None:
    field = b"x" * size
    batch = build_batch([(5, field, None, ()), (7, None, field, ()), (9, b"k", field, [("name", field)])])
    _, data, spans = spans_of(batch)
    assert [(s.offset, s.timestamp, s.key, s.has_value) for s in spans] == [
        (0, 5, field, False),
        (1, 7, None, True),
        (2, 9, b"k", True),
    ]
    assert b"".join(bytes(data[s.start : s.end]) for s in spans) == data


@pytest.mark.parametrize("delta", [0, 63, 64, -64, -65, 8191, 8192, 2**31, -(2**31), 2**61])
def test_spans_of_timestamps_far_apart(delta: int) -> None:
    _, _, spans = spans_of(build_batch([(2**61, b"k", b"v", ()), (2**61 + delta, b"k", b"v", ())]))
    assert [s.timestamp for s in spans] == [2**61, 2**61 + delta]


def test_spans_of_many_records() -> None:
    _, _, spans = spans_of(build_batch([(0, b"k", b"v", ())] * 8300))
    assert [(s.offset, s.key, s.has_value) for s in spans] == [(offset, b"k", True) for offset in range(8300)]


def test_spans_have_the_time_of_append() -> None:
    batch = build_batch([(5, b"k", b"v", ()), (7, b"k", b"v", ())])
    stamp_log_append_time(batch, 0, 123_456)
    _, _, spans = spans_of(batch)
    assert [s.timestamp for s in spans] == [123_456, 123_456]


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.codec_name)
@pytest.mark.parametrize("horizon", [None, 6])
def test_some_of_the_records_stay(codec: Compression, horizon: int | None) -> None:
    batch = build_batch([(time, b"k", b"v" * time, ()) for time in (5, 70, 9, 8)], base_offset=70, compression=codec)
    header, data, spans = spans_of(batch)
    rewritten = rewrite_batch(header, data, spans[:3], delete_horizon_ms=horizon)
    assert check_records(rewritten) == check_records(batch)[:3]
    after = check_batch(rewritten)
    assert (after.compression, after.record_count, after.max_timestamp) == (codec, 3, 70)
    assert after.base_timestamp == (5 if horizon is None else 6)


@given(
    RECORDS,
    st.sampled_from(list(Compression)),
    st.one_of(st.none(), st.integers(0, 2**41)),
    st.booleans(),
    st.data(),
)
def test_what_stays_is_unchanged(
    records: list,  # type: ignore[type-arg]
    codec: Compression,
    horizon: int | None,
    append_time: bool,
    data: st.DataObject,
) -> None:
    batch = build_batch(
        records, base_offset=70, leader_epoch=3, compression=codec, producer_id=5, producer_epoch=2, base_sequence=9
    )
    if append_time:
        stamp_log_append_time(batch, 0, 123_456)
    header, body, spans = spans_of(batch)
    kept = data.draw(st.lists(st.sampled_from(range(len(spans))), min_size=1, unique=True).map(sorted))
    rewritten = rewrite_batch(header, body, [spans[i] for i in kept], delete_horizon_ms=horizon)
    before = check_records(batch)
    assert check_records(rewritten) == [before[i] for i in kept]
    after = check_batch(rewritten)
    for field in (
        "base_offset",
        "last_offset",
        "partition_leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    ):
        assert getattr(after, field) == getattr(header, field)
    assert after.compression == codec
    assert after.has_delete_horizon is (horizon is not None)
    assert after.base_timestamp == (header.base_timestamp if horizon is None else horizon)
    assert after.max_timestamp == max(before[i].timestamp for i in kept)
    if horizon is not None:
        # The next cleaning keeps the horizon that the first one set.
        _, body, spans = spans_of(rewritten)
        again = rewrite_batch(after, body, spans[-1:])
        assert check_batch(again).base_timestamp == horizon
        assert check_batch(again).has_delete_horizon
        assert check_records(again) == [before[kept[-1]]]


def test_an_empty_batch_keeps_its_place_and_its_producer() -> None:
    batch = build_batch(
        [(5, b"k", b"v", ()), (9, b"k", b"v", ())],
        base_offset=40,
        leader_epoch=3,
        compression=Compression.ZSTD,
        producer_id=5,
        producer_epoch=2,
        base_sequence=7,
        transactional=True,
    )
    empty = check_batch(empty_batch(check_batch(batch)))
    assert empty.size == 61
    assert (empty.base_offset, empty.last_offset, empty.next_offset) == (40, 41, 42)
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence, empty.last_sequence) == (5, 2, 7, 8)
    assert (empty.record_count, empty.base_timestamp, empty.max_timestamp) == (0, -1, 9)
    assert empty.is_transactional
    assert empty.compression == Compression.NONE
    assert check_records(empty_batch(check_batch(batch))) == []


def test_an_emptied_marker_is_a_marker_still() -> None:
    marker = build_end_transaction_marker(
        commit=True, coordinator_epoch=0, producer_id=5, producer_epoch=2, timestamp=9
    )
    empty = check_batch(empty_batch(check_batch(marker)))
    assert empty.is_control
    assert empty.is_transactional


@pytest.mark.parametrize(
    "body",
    [
        b"\x02",  # a length and nothing behind it
        struct.pack(">b", 0x0C) + b"\0\0\0",  # a record longer than what is there
        b"\x0c\0\0\0\x20kk",  # a key that runs over its record
        b"\x0c\0\0\0\x02k\x01\0\0",  # bytes behind the last record
        b"\xff\xff\xff\xff\xff\xff",  # a length that never ends
        b"\x01\0\0\0\x01\x01\0",  # a negative length
        b"\x0f\0\0\0\x01\x01\0",  # -8, and six bytes of fields
    ],
)
def test_broken_records_are_said(body: bytes) -> None:
    header = check_batch(build_batch([(0, b"k", b"v", ())]))
    with pytest.raises(InvalidRecord):
        list(record_spans(body, header))
