"""Filters narrow what a batch reads, and never exclude a record that matches."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from barnabas.spark.source import batch as source
from barnabas.spark.source.batch import FilteringBatchReader
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import parse_batch_options
from barnabas.spark.source.pushed_filters import PushedFilters
from tests.spark.fake_cluster import FakeCluster

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def cluster(monkeypatch) -> FakeCluster:
    fake = FakeCluster()
    for name in ("a", "b"):
        for partition in fake.create(name, partitions=2).partitions.values():
            for i in range(10):
                partition.append(b"x", timestamp=1_000 * i)
    monkeypatch.setattr(source, "OffsetReader", lambda options: OffsetReader(options, connect=fake.connect))
    return fake


def plan(*filters: Filter) -> tuple[list[tuple[str, int, int, int]], list[Filter]]:
    reader = FilteringBatchReader(parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a,b"}, 0))
    left = list(reader.pushFilters(list(filters)))
    tasks = [task.wanted for task in reader.partitions()]
    return [(r.topic, r.partition, r.start, r.end) for r in tasks], left


def test_topics_and_partitions(cluster):
    only = [("b", 1, 0, 10)]
    assert plan(EqualTo(("topic",), "b"), EqualTo(("partition",), 1)) == (only, [])
    assert plan(In(("topic",), ("b", "c")), In(("partition",), (1, 7))) == (only, [])
    assert plan(In(("topic",), ("a", "b")), In(("topic",), ("b", None)), GreaterThan(("partition",), 0)) == (only, [])
    assert plan(EqualTo(("topic",), "c")) == ([], [])


@pytest.mark.parametrize(
    ("filters", "start", "end"),
    [
        ([GreaterThanOrEqual(("offset",), 3)], 3, 10),
        ([GreaterThan(("offset",), 3), LessThan(("offset",), 7)], 4, 7),
        ([LessThanOrEqual(("offset",), 7)], 0, 8),
        ([EqualTo(("offset",), 9)], 9, 10),
    ],
)
def test_offsets(cluster, filters, start, end):
    tasks, left = plan(EqualTo(("topic",), "a"), EqualTo(("partition",), 0), *filters)
    assert (tasks, left) == ([("a", 0, start, end)], [])


def test_offsets_that_no_record_has(cluster):
    assert plan(GreaterThan(("offset",), 9)) == ([], [])
    assert plan(LessThan(("offset",), 0)) == ([], [])
    assert plan(EqualTo(("offset",), 3), EqualTo(("offset",), 4)) == ([], [])


@pytest.mark.parametrize(("kind", "first"), [(GreaterThanOrEqual, 4), (GreaterThan, 5), (EqualTo, 4)])
def test_moments_from_below_narrow_and_are_applied_again(cluster, kind, first):
    moment = kind(("timestamp",), datetime(1970, 1, 1, 0, 0, 4, tzinfo=UTC))
    tasks, left = plan(EqualTo(("topic",), "a"), moment)
    assert tasks == [("a", 0, first, 10), ("a", 1, first, 10)]
    assert left == [moment]


def test_a_moment_between_two_milliseconds(cluster):
    between = GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, 0, 0, 4, 1, tzinfo=UTC))
    assert plan(EqualTo(("topic",), "a"), between)[0] == [("a", 0, 5, 10), ("a", 1, 5, 10)]


def test_a_moment_after_all_records_and_one_before_1970(cluster):
    assert plan(GreaterThan(("timestamp",), NOW))[0] == []
    assert len(plan(GreaterThan(("timestamp",), datetime(1900, 1, 1, tzinfo=UTC)))[0]) == 4


def test_what_does_not_narrow_is_left_to_spark(cluster):
    others = [
        EqualTo(("value",), b"x"),
        Not(EqualTo(("topic",), "a")),
        StringStartsWith(("topic",), "a"),
        LessThan(("timestamp",), NOW),
        GreaterThan(("timestamp",), NOW.replace(tzinfo=None)),
        EqualNullSafe(("offset",), 3),
        IsNotNull(("key",)),
        IsNull(("offset",)),
        EqualTo(("headers", "key"), "a"),
        GreaterThan(("topic",), "a"),
        GreaterThan(("offset",), 2.5),
    ]
    tasks, left = plan(*others)
    assert len(tasks) == 4
    assert left == others
    assert plan(IsNotNull(("topic",)), IsNotNull(("offset",)))[1] == []


KINDS = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
numbers = st.tuples(
    st.sampled_from(["partition", "offset", "timestamp"]), st.sampled_from(list(KINDS)), st.integers(-3, 12)
)


@given(st.lists(numbers, max_size=4), st.lists(st.integers(0, 10), min_size=10, max_size=10))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_no_record_that_matches_is_excluded(chosen, timestamps):
    """Against the records one by one, with timestamps that do not ascend."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    pushed = PushedFilters()
    list(
        pushed.push(
            kind((name,), epoch + timedelta(milliseconds=value) if name == "timestamp" else value)
            for name, kind, value in chosen
        )
    )
    since = {}
    if pushed.since_ms is not None:
        found = next((i for i, ms in enumerate(timestamps) if ms >= pushed.since_ms), -1)
        since = {("t", partition): found for partition in (0, 1)}
    whole = {("t", partition): 0 for partition in (0, 1)}
    start, end = pushed.narrow(whole, dict.fromkeys(whole, 10), since)
    for partition in (0, 1):
        for offset, ms in enumerate(timestamps):
            row = {"partition": partition, "offset": offset, "timestamp": ms}
            matches = all(KINDS[kind](row[name], value) for name, kind, value in chosen)
            exact = all(KINDS[kind](row[name], value) for name, kind, value in chosen if name != "timestamp")
            read = ("t", partition) in start and start["t", partition] <= offset < end["t", partition]
            assert read or not matches
            assert exact or not read, "what Spark does not apply again is exact"
