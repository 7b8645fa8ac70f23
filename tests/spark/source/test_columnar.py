"""Columns decoded from batches equal the plain record decoder's, and no length reads outside the bytes."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.errors import CorruptRecord, RecordError
from barnabas.records.record import iter_records
from barnabas.records.record_batch import HEADER, iter_batches
from barnabas.spark.source import columnar
from barnabas.spark.source.columnar import arrow_schema, select_batches, to_arrow
from barnabas.spark.source.columns import DEFAULT, TYPES
from tests.spark.numpy_and_native import WAYS, chosen, installed

ALL = tuple(TYPES)


def rows(buffer: bytes, start: int = 0, end: int = 2**62, aborted=(), *, columns=ALL) -> list[dict]:
    """Decode in each way that is installed, and return their common result."""
    view = memoryview(bytes(buffer))
    selection = select_batches(view, start, end, aborted)
    found = []
    for way in installed():
        with chosen(way):
            batches = list(to_arrow(view, selection.batches, start, end, topic="t", partition=3, columns=columns))
            found.append(pa.Table.from_batches(batches, arrow_schema(columns)))
    assert all(each.equals(found[0]) for each in found)
    return found[0].to_pylist()


def as_records(found: list[dict]) -> list[tuple]:
    return [
        (
            r["offset"],
            round(r["timestamp"].timestamp() * 1000),
            r["key"],
            r["value"],
            [(h["key"], h["value"]) for h in r["headers"] or []],
        )
        for r in found
    ]


record = st.tuples(
    st.integers(-1, 4_102_444_800_000),
    st.one_of(st.none(), st.binary(max_size=200)),
    st.one_of(st.none(), st.binary(max_size=20_000)),
    st.lists(st.tuples(st.text(max_size=4), st.one_of(st.none(), st.binary(max_size=4))), max_size=3),
)
batch = st.tuples(
    st.lists(record, min_size=1, max_size=30), st.sampled_from(Compression), st.integers(0, 5), st.booleans()
)


@given(st.lists(batch, max_size=5), st.integers(0, 60), st.integers(0, 80))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_the_same_as_the_record_decoder(batches, start, length):
    buffer, offset = b"", 0
    for records, codec, gap, append_time in batches:
        offset += gap
        buffer += build_batch(records, base_offset=offset, compression=codec, log_append_time=append_time)
        offset += len(records)
    wanted = [
        (r.offset, r.timestamp, r.key, r.value, list(r.headers))
        for position, header in iter_batches(buffer)
        for r in iter_records(buffer[position : position + header.size])
        if start <= r.offset < start + length
    ]
    assert as_records(rows(buffer, start, start + length)) == wanted


@given(st.lists(batch, max_size=3), st.permutations(ALL), st.integers(1, len(ALL)))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_chosen_columns_are_those_of_all_columns(batches, order, count):
    buffer, offset = b"", 0
    for records, codec, gap, append_time in batches:
        offset += gap
        buffer += build_batch(records, base_offset=offset, compression=codec, log_append_time=append_time)
        offset += len(records)
    names = order[:count]
    assert rows(buffer, columns=names) == [{name: row[name] for name in names} for row in rows(buffer)]


def test_columns_are_those_of_sparks_own_source():
    fields = [(f.name, str(f.type)) for f in arrow_schema(ALL)]
    assert fields == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int32"),
        ("offset", "int64"),
        ("timestamp", "timestamp[us, tz=UTC]"),
        ("timestampType", "int32"),
        ("headers", "list<element: struct<key: string, value: binary>>"),
    ]
    assert arrow_schema(DEFAULT) == pa.schema(list(arrow_schema(ALL))[:-1])


def test_one_row_in_full():
    buffer = build_batch([(1_500, b"k", None, [("h", b"v"), ("n", None)]), (1_501, None, b"", [])], base_offset=41)
    assert rows(buffer) == [
        {
            "key": b"k",
            "value": None,
            "topic": "t",
            "partition": 3,
            "offset": 41,
            "timestamp": datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"v"}, {"key": "n", "value": None}],
        },
        {
            "key": None,
            "value": b"",
            "topic": "t",
            "partition": 3,
            "offset": 42,
            "timestamp": datetime(1970, 1, 1, 0, 0, 1, 501_000, UTC),
            "timestampType": 0,
            "headers": None,
        },
    ]


def test_with_log_append_time_every_record_has_the_batchs_timestamp():
    found = rows(build_batch([(5, None, b"a", []), (9, None, b"b", [])], log_append_time=True))
    assert [(r["timestampType"], r["timestamp"].microsecond) for r in found] == [(1, 9000), (1, 9000)]


def test_rows_before_the_fetched_offset_are_dropped():
    buffer = build_batch([(0, None, bytes([i]), []) for i in range(10)], base_offset=100)
    assert [r["offset"] for r in rows(buffer, 104, 107)] == [104, 105, 106]


def test_the_next_fetch_begins_after_the_last_offset_not_after_the_count():
    """A compacted batch keeps its last offset although records are gone."""
    buffer = bytearray(build_batch([(0, None, b"x", [])], base_offset=10))
    fields = list(HEADER.unpack_from(buffer))
    fields[6] = 7
    HEADER.pack_into(buffer, 0, *fields)
    selection = select_batches(memoryview(buffer), 10, 100, check_crcs=False)
    assert selection.next_offset == 18


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch():
    first, second = build_batch([(0, None, b"a", [])]), build_batch([(0, None, b"b", [])], base_offset=1)
    for cut in range(len(second)):
        view = memoryview(bytes(first + second[:cut]))
        selection = select_batches(view, 0, 10)
        assert (selection.next_offset, len(selection.batches)) == (1, 1)


def test_without_a_whole_batch_the_offset_stays():
    assert select_batches(memoryview(b""), 5, 10).next_offset == 5


def test_batches_past_the_end_are_not_decoded():
    buffer = b"".join(build_batch([(0, None, b"x", [])], base_offset=i) for i in range(5))
    selection = select_batches(memoryview(buffer), 1, 3)
    assert [h.base_offset for _, h in selection.batches] == [1, 2]
    assert selection.next_offset == 3


def test_a_gap_over_the_end_of_the_range_ends_it():
    """Nothing is left between 2 and 10; a next offset of 2 would be fetched again for ever."""
    buffer = build_batch([(0, None, b"x", [])] * 2) + build_batch([(0, None, b"y", [])], base_offset=10)
    assert select_batches(memoryview(buffer), 0, 5).next_offset == 5


def transactional(producer: int, base: int, count: int = 2) -> bytes:
    records = [(0, None, b"%d" % (base + i), []) for i in range(count)]
    return bytes(
        build_batch(
            records, base_offset=base, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
        )
    )


def marker(producer: int, base: int, commit: bool) -> bytes:
    return bytes(
        build_end_transaction_marker(
            commit=commit, base_offset=base, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )
    )


def test_aborted_transactions_are_skipped_until_their_marker():
    """Producer 7 aborts, then commits; producer 8 commits in between; the list names what was aborted (KIP-98)."""
    buffer = (
        transactional(7, 0)
        + transactional(8, 2)
        + transactional(7, 4)
        + marker(7, 6, commit=False)
        + transactional(7, 7)
        + marker(8, 9, commit=True)
        + marker(7, 10, commit=True)
    )
    assert [r["offset"] for r in rows(buffer)] == [0, 1, 2, 3, 4, 5, 7, 8]
    assert [r["offset"] for r in rows(buffer, aborted=[(7, 0)])] == [2, 3, 7, 8]
    # The transaction may have begun before the offset fetched; the response then names an earlier first offset.
    assert [r["offset"] for r in rows(buffer, 4, aborted=[(7, 0)])] == [7, 8]
    assert select_batches(memoryview(buffer), 0, 99).next_offset == 11


def test_a_transaction_aborted_later_does_not_hide_what_came_before():
    buffer = transactional(7, 0) + marker(7, 2, commit=True) + transactional(7, 3) + marker(7, 5, commit=False)
    assert [r["offset"] for r in rows(buffer, aborted=[(7, 3)])] == [0, 1]


@pytest.mark.parametrize("way", WAYS)
def test_a_piece_has_at_most_the_maximum_number_of_rows(monkeypatch, way):
    monkeypatch.setattr(columnar, "ROWS_PER_PIECE", 4)
    buffer = b"".join(build_batch([(0, None, b"x", [])] * 3, base_offset=3 * i) for i in range(5))
    view = memoryview(buffer)
    selection = select_batches(view, 0, 99)
    with chosen(way):
        pieces = list(to_arrow(view, selection.batches, 0, 99, topic="t", partition=0, columns=DEFAULT))
    assert [len(p) for p in pieces] == [4, 2, 4, 2, 3]
    assert pa.Table.from_batches(pieces)["offset"].to_pylist() == list(range(15))


def test_a_piece_of_many_compressed_batches_and_of_each_kind_in_turn():
    codecs = [
        Compression.NONE,
        Compression.ZSTD,
        Compression.ZSTD,
        Compression.NONE,
        Compression.NONE,
        Compression.LZ4,
        Compression.GZIP,
        Compression.NONE,
        Compression.SNAPPY,
    ]
    buffer = b"".join(
        build_batch([(0, b"k%d" % i, b"v" * 500, [])] * 2, base_offset=2 * i, compression=codec)
        for i, codec in enumerate(codecs)
    )
    found = rows(buffer)
    assert [r["offset"] for r in found] == list(range(18))
    assert [r["key"] for r in found] == [b"k%d" % (i // 2) for i in range(18)]


@pytest.mark.parametrize("size", [0, 40, 60, 120, 8_000, 8_200, 20_001, 1_048_500, 1_048_600, 2_500_001])
def test_records_whose_length_takes_one_to_four_bytes(size):
    values = [b"a", b"v" * size, b"z"]
    found = rows(build_batch([(0, None, value, []) for value in values]))
    assert [r["value"] for r in found] == values


@pytest.mark.parametrize("way", WAYS)
def test_timestamps_that_do_not_fit_are_clipped(way):
    buffer = build_batch([(2**62, None, b"x", [])])
    view = memoryview(buffer)
    selection = select_batches(view, 0, 9)
    with chosen(way):
        (piece,) = to_arrow(view, selection.batches, 0, 9, topic="t", partition=0, columns=DEFAULT)
    assert piece["timestamp"].cast(pa.int64()).to_pylist() == [(2**63 - 1) // 1000 * 1000]


def test_a_wrong_checksum_is_rejected_if_checksums_are_checked():
    buffer = bytearray(build_batch([(0, b"key", b"value", [])]))
    buffer[-3] ^= 1
    with pytest.raises(CorruptRecord):
        select_batches(memoryview(buffer), 0, 9)
    assert select_batches(memoryview(buffer), 0, 9, check_crcs=False).batches


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("deltas", [(-1, 1), (0, 0), (1, 0)], ids=["before the batch", "twice", "descending"])
def test_offsets_that_do_not_ascend_from_the_base_offset_are_damage(deltas, way):
    """Each record is length, attributes, timestamp delta, offset delta …, all of one byte here."""
    buffer = bytearray(build_batch([(0, None, b"x", [])] * 2, base_offset=5))
    size = (len(buffer) - HEADER.size) // 2
    for i, delta in enumerate(deltas):
        buffer[HEADER.size + i * size + 3] = (delta << 1) ^ (delta >> 7)
    view = memoryview(buffer)
    selection = select_batches(view, 0, 99, check_crcs=False)
    with chosen(way), pytest.raises(CorruptRecord, match="do not ascend"):
        list(to_arrow(view, selection.batches, 0, 99, topic="t", partition=0, columns=DEFAULT))


@given(st.data())
@settings(derandomize=True, deadline=None, max_examples=300)
def test_damaged_records_raise_and_never_read_outside(data):
    """Past the checksum, Arrow would follow any length into foreign memory: every length is checked first."""
    records = [(i, b"k" * i, b"v" * (100 * i), [("h", b"x")] * (i % 3)) for i in range(5)]
    buffer = bytearray(build_batch(records, compression=Compression.NONE))
    for _ in range(data.draw(st.integers(1, 4))):
        buffer[data.draw(st.integers(61, len(buffer) - 1))] = data.draw(st.integers(0, 255))
    view = memoryview(buffer)
    selection = select_batches(view, 0, 99, check_crcs=False)
    outcomes = []
    for way in installed():
        try:
            with chosen(way):
                pieces = list(to_arrow(view, selection.batches, 0, 99, topic="t", partition=0, columns=ALL))
        except RecordError as error:
            outcomes.append(repr(error))
        else:
            for piece in pieces:
                piece.validate(full=True)
            outcomes.append(pieces)
    assert all(outcome == outcomes[0] for outcome in outcomes)
