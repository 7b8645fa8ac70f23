"""One batch has one digest, however it is ordered and split; another batch has another."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.compression import Compression
from barnabas.spark.sink.columns import RowRouter
from barnabas.spark.sink.digest import RowDigest
from barnabas.spark.sink.encoder import encode
from tests.spark.numpy_and_native import WAYS, chosen, installed, needs_native

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ROW = {"key": b"k", "value": b"v"}
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS,
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us"),
}


def digest(rows, *, topic: str | None = "t", now: int = 7, max_bytes: int = 1000, cut: int = 1000) -> int:
    """Return the digest of rows that arrive in pieces of `cut`."""
    found = RowDigest()
    names = [name for name in TYPES if any(name in row for row in rows)]
    for begin in range(0, len(rows), cut):
        part = rows[begin : begin + cut]
        columns = {name: pa.array([row.get(name) for row in part], TYPES[name]) for name in names}
        for _, records in RowRouter(topic, lambda _: 3, begin, lambda: now).route(pa.record_batch(columns)):
            for _ in encode(records, max_bytes, Compression.NONE, found):
                pass
    return found.value


# Some rows are hashed as a whole, and some in blocks.
BYTES = st.none() | st.binary(max_size=200) | st.binary(max_size=100).map(lambda end: b"long" * 123 + end)
ROWS = st.lists(st.fixed_dictionaries({"key": BYTES, "value": BYTES}), min_size=1, max_size=30)


@given(ROWS, st.integers(1, 3000), st.integers(1, 30), st.randoms())
def test_order_and_split_do_not_matter(rows, max_bytes, cut, chance):
    other = random.Random(chance.random()).sample(rows, len(rows))
    assert digest(rows) == digest(other, max_bytes=max_bytes, cut=cut, now=10**12)


@given(ROWS, ROWS)
def test_other_rows_have_another_one(one, other):
    first, second = (sorted(repr((row["key"], row["value"])) for row in rows) for rows in (one, other))
    same = first == second
    assert (digest(one) == digest(other)) == same


@pytest.mark.parametrize(
    "other",
    [
        {"key": b"kv", "value": b""},
        {"key": b"", "value": b"kv"},
        {"key": None, "value": b"v"},
        {"key": b"k", "value": None},
        {"key": b"k", "value": b"v\0"},
        {**ROW, "headers": [("h", b"")]},
        {**ROW, "headers": [("h", None)]},
        {**ROW, "partition": 0},
        {**ROW, "partition": 1},
        {**ROW, "timestamp": 0},
        {**ROW, "timestamp": 1000},
    ],
)
def test_each_part_of_a_row_counts(other):
    assert digest([other]) != digest([ROW])
    # Two rows that exchange what they differ in are other rows.
    pair = [{"key": b"a", "value": b"x"}, {"key": b"b", "value": b"y"}]
    assert digest(pair) != digest([{"key": b"a", "value": b"y"}, {"key": b"b", "value": b"x"}])


def test_absent_and_null_columns_are_the_same():
    nothing = {"headers": None, "partition": None, "timestamp": None}
    assert digest([{**ROW, **nothing}]) == digest([ROW]) == digest([{**ROW, "headers": []}])


def test_the_topic_counts_where_the_column_decides():
    one, other = [{**ROW, "topic": "a"}], [{**ROW, "topic": "b"}]
    assert digest(one, topic=None) != digest(other, topic=None)
    assert digest(one) == digest(other) == digest([ROW])
    both = [{"value": b"x", "topic": "a"}, {"value": b"y", "topic": "b"}]
    exchanged = [{"value": b"y", "topic": "a"}, {"value": b"x", "topic": "b"}]
    assert digest(both, topic=None) != digest(exchanged, topic=None)
    assert digest(both, topic=None) == digest(both[::-1], topic=None)


def added(data: bytes, starts, ends, marks=None) -> int:
    found = RowDigest()
    found.add(data, np.array(starts), np.array(ends), marks)
    return found.value


@needs_native
@given(
    st.binary(min_size=1, max_size=64),
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 2**64 - 1)), min_size=1, max_size=20),
    st.integers(0, 70),
    st.booleans(),
)
def test_numpy_and_barnabas_native_have_the_same(seed, rows, behind, is_marked):
    ends = np.cumsum([length for length, _ in rows])
    starts = ends - [length for length, _ in rows]
    data = (seed * (int(ends[-1]) // len(seed) + 1))[: ends[-1]] + b"x" * behind
    marks = np.array([mark for _, mark in rows], np.uint64) if is_marked else None
    values = []
    for way in installed():
        with chosen(way):
            values.append(added(data, starts, ends, marks))
    assert values[0] == values[1]


@needs_native
def test_barnabas_native_declines_rows_that_are_not_in_the_data():
    from barnabas_native import digest as native_digest

    assert native_digest(b"ab", np.array([0]), np.array([2]), None) == added(b"ab", [0], [2])
    for start, end in [(0, 3), (-1, 1), (1, 1), (2, 1), (-(2**63), 2**63 - 1)]:
        assert native_digest(b"ab", np.array([0, start]), np.array([1, end]), None) is None
    with pytest.raises(ValueError, match="as many numbers"):
        native_digest(b"ab", np.array([0]), np.array([1, 2]), None)


@pytest.mark.parametrize("way", WAYS)
def test_a_value_that_decisions_on_disk_have(way):
    """Another value for these rows would take a batch that is repeated after an upgrade for another one."""
    rows = [{"key": b"%d" % i, "value": b"v" * i, "partition": i % 3, "timestamp": i * 10**6} for i in range(200)]
    with chosen(way):
        assert digest(rows) == 17084061161210207783
        assert digest([{**row, "topic": "t"} for row in rows], topic=None) == 8103882158326393425
        assert (
            digest([{**row, "value": b"long" * (100 + i)} for i, row in enumerate(rows)], max_bytes=5000)
            == 10619994222394127848
        )


def test_rows_at_the_end_of_the_data():
    data = bytes(range(1, 201))
    ends = np.array([1, 64, 65, 130, 200])
    starts = np.array([0, 1, 64, 65, 130])
    whole, moved = RowDigest(), RowDigest()
    whole.add(data, starts, ends)
    moved.add(data + b"x" * 100, starts, ends)
    assert whole.value == moved.value != 0
