"""The decoder in C gives what numpy's gives, declines what is damaged, and reads nothing outside the bytes."""

from __future__ import annotations

import dataclasses
import random
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records.builder import build_batch
from barnabas.records.errors import RecordError
from barnabas.records.record_batch import HEADER, iter_batches
from barnabas.spark.source import native_decoder, numpy_decoder
from barnabas.spark.source.columnar import arrow_schema
from barnabas.spark.source.columns import TYPES
from barnabas.spark.source.piece import Piece

native: ModuleType = pytest.importorskip("barnabas_native")

ALL = tuple(TYPES)
BYTES = st.none() | st.binary(max_size=150)
RECORD = st.tuples(st.integers(-1, 2**62), BYTES, BYTES, st.lists(st.tuples(st.text(max_size=4), BYTES), max_size=3))
BATCH = st.tuples(st.lists(RECORD, min_size=1, max_size=12), st.integers(0, 2**40), st.booleans())
COLUMNS = st.lists(st.sampled_from(ALL), unique=True, min_size=1)


def piece_of(batches, columns=ALL) -> Piece:
    """Return the piece of batches, each of records, a gap of offsets in front, and whether it has the time of append."""
    buffer, offset = bytearray(), 0
    for records, gap, append_time in batches:
        offset += gap
        buffer += build_batch(records, base_offset=offset, log_append_time=append_time)
        offset += len(records)
    found = list(iter_batches(buffer))
    spans = [(position + HEADER.size, position + header.size) for position, header in found]
    data = np.frombuffer(buffer, np.uint8)
    return Piece(data, [header for _, header in found], spans, "t", 3, arrow_schema(columns))


def outcome(piece: Piece, decode=numpy_decoder.decode):
    """Return the offsets and the rows, or the error."""
    try:
        offsets, rows = decode(piece)
    except (RecordError, ValueError) as error:
        return repr(error)
    rows.validate(full=True)
    return offsets.tolist(), rows


def by_native(piece: Piece):
    return outcome(piece, lambda piece: native_decoder.decode(native, piece) or numpy_decoder.decode(piece))


@given(st.lists(BATCH, max_size=4), COLUMNS)
@settings(derandomize=True, deadline=None, max_examples=12)
def test_the_rows_are_those_of_numpy_and_no_whole_piece_is_declined(batches, columns):
    piece = piece_of(batches, columns)
    decoded = native_decoder.decode(native, piece)
    assert decoded is not None
    assert outcome(piece, lambda _: decoded) == outcome(piece)


def damaged(whole: Piece, chance: random.Random) -> Piece:
    """Return the piece with other bytes, and now and then with another record count, or an end that comes earlier."""
    data = whole.data.copy()
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])
    headers, spans = list(whole.headers), list(whole.spans)
    at = chance.randrange(len(headers))
    if chance.random() < 0.2:
        headers[at] = headers[at]._replace(record_count=max(1, headers[at].record_count + chance.randint(-2, 2)))
    if chance.random() < 0.2:
        spans[at] = (spans[at][0], max(spans[at][0], spans[at][1] - chance.randint(1, 40)))
    schema = arrow_schema(chance.sample(ALL, chance.randint(1, len(ALL))))
    return dataclasses.replace(whole, data=data, headers=headers, spans=spans, schema=schema)


DAMAGES = [500, pytest.param(100_000, marks=pytest.mark.long)]


@pytest.mark.parametrize("count", DAMAGES)
def test_damaged_pieces_have_the_same_outcome(count):
    records = [(i, b"k" * i or None, b"v" * (40 * i), [("h", b"x"), ("", None)][: i % 3]) for i in range(6)]
    whole = piece_of([(records, 3, False), (records[:2], 0, True), ([(2**40, None, None, [])], 2**33, False)])
    chance = random.Random(count)
    errors = 0
    for _ in range(count):
        piece = damaged(whole, chance)
        found = by_native(piece)
        assert found == outcome(piece)
        errors += isinstance(found, str)
    assert count // 20 < errors < count, "some pieces are whole, and some are not"


@given(
    st.binary(max_size=60),
    st.lists(st.tuples(*[st.integers(-3, 70) | st.sampled_from([-(2**63), 2**31, 2**63 - 1])] * 6), max_size=3),
    st.integers(0, 15),
)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_batches_that_are_not_in_the_data_are_declined(data, batches, columns):
    """Under a sanitizer this also finds reads outside the bytes."""
    found = native.decode(data, np.array(batches, np.int64), columns, bytearray)
    outside = [not 0 <= start <= end <= len(data) for start, end, *_ in batches]
    assert found is None or not any(outside)


@pytest.mark.parametrize(
    "record",
    [
        b"\x00\x00\x00\x01\x01",  # no count of headers, although headers are wanted
        b"\x00\x00\x00\x01\x03\x00",  # a value of length -2
        b"\x00\x00\x00\x06ab\x00\x00",  # a key over the end
        b"\x00\x00\x01\x01\x01\x00",  # an offset before the batch's
        b"\x00\x00\x00\x01\x01\x02\x01\x01",  # a header without a key
        b"\x00\x00\x00\x01\x01\x04\x02k\x01",  # fewer headers than their count
        b"\x00" + b"\x80" * 10 + b"\x00" * 6,  # a timestamp of more than ten bytes
    ],
)
def test_damage_is_declined(record):
    data = bytes([2 * len(record)]) + record
    numbers = np.array([0, len(data), 1, 0, 0, 0], np.int64)
    assert native.decode(data, numbers, native.KEY | native.VALUE | native.HEADERS, bytearray) is None


def test_the_keys_of_headers_need_not_be_text():
    piece = piece_of([([(0, b"k", b"v", [("good", b"x"), ("??", None)])], 0, False)])
    data = np.frombuffer(piece.data.tobytes().replace(b"??", b"\xff?"), np.uint8)
    changed = dataclasses.replace(piece, data=data)
    assert native_decoder.decode(native, changed)[1]["headers"].to_pylist() == [
        [{"key": "good", "value": b"x"}, {"key": "\ufffd?", "value": None}]
    ]
    assert by_native(changed) == outcome(changed)


def test_the_greatest_offsets_and_times():
    piece = piece_of([([(0, None, b"v", []), (1, None, b"w", [])], 0, False)])
    for base, time in ((2**63 - 2, 2**63 - 1), (2**63 - 1, 0), (-1, -(2**63))):
        headers = [piece.headers[0]._replace(base_offset=base, base_timestamp=time)]
        changed = dataclasses.replace(piece, headers=headers)
        assert by_native(changed) == outcome(changed)


def test_numbers_of_a_wrong_shape_are_an_error():
    with pytest.raises(ValueError, match="six numbers"):
        native.decode(b"", b"\0" * 47, 0, bytearray)


def test_a_buffer_that_cannot_be_filled_is_an_error():
    with pytest.raises(ValueError, match="too small"):
        native.decode(b"", b"", native.KEY, lambda size: bytearray(0))
    with pytest.raises(BufferError):
        native.decode(b"", b"", native.KEY, bytes)
    with pytest.raises(MemoryError):
        native.decode(b"", b"", native.KEY | native.HEADERS, lambda size: exec("raise MemoryError"))
