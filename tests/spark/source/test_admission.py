"""How many offsets a micro-batch takes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.source.admission import MinimumOffsets, take_at_most

A, B, C = ("t", 0), ("t", 1), ("t", 2)


def test_a_batch_takes_everything_within_the_limit():
    assert take_at_most(30, {A: 0, B: 10}, {A: 10, B: 30}) == {A: 10, B: 30}


def test_shared_in_proportion():
    assert take_at_most(30, {A: 0, B: 0}, {A: 100, B: 200}) == {A: 10, B: 20}


def test_no_partition_starves():
    assert take_at_most(10, {A: 0, B: 5}, {A: 1_000_000, B: 6}) == {A: 9, B: 6}


def test_partitions_without_new_offsets_get_their_end():
    assert take_at_most(1, {A: 5, B: 9}, {A: 50, B: 3, C: 8}) == {A: 6, B: 3, C: 8}


@given(
    st.dictionaries(st.tuples(st.just("t"), st.integers(0, 20)), st.tuples(st.integers(0, 99), st.integers(0, 10**9))),
    st.integers(1, 10**6),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_every_partition_advances_and_none_passes_its_end(spans, limit):
    start = {tp: first for tp, (first, _) in spans.items()}
    end = {tp: first + length for tp, (first, length) in spans.items()}
    taken = take_at_most(limit, start, end)
    assert all(start[tp] <= taken[tp] <= end[tp] for tp in end)
    assert all(taken[tp] > start[tp] for tp in end if end[tp] > start[tp])
    assert sum(taken[tp] - start[tp] for tp in end) < limit + max(1, len(end)) or taken == end


def test_a_batch_waits_for_enough_offsets_or_for_the_delay():
    minimum = MinimumOffsets(10, max_delay_ms=1000)
    assert not minimum.holds_back({}, {A: 1}, now_ms=50_000)
    assert minimum.holds_back({A: 1}, {A: 5}, now_ms=50_500)
    assert not minimum.holds_back({A: 1}, {A: 11}, now_ms=50_600)
    assert minimum.holds_back({A: 11}, {A: 12}, now_ms=51_599)
    assert not minimum.holds_back({A: 11}, {A: 12}, now_ms=51_600)


def test_a_new_partition_counts_from_its_beginning():
    minimum = MinimumOffsets(10, max_delay_ms=1000)
    assert not minimum.holds_back({}, {}, now_ms=0)
    assert minimum.holds_back({}, {A: 9}, now_ms=1)
    assert not minimum.holds_back({}, {A: 10}, now_ms=1)
