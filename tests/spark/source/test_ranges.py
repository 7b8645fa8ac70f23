"""Ranges are split into tasks: the parts cover the whole, and there are as many as requested."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.source.ranges import OffsetRange, cut_ranges


def ranges_of(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", p, 100 * p, 100 * p + size) for p, size in enumerate(sizes)]


def sizes(cut: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(r.partition, r.size) for r in cut]


def test_one_task_a_partition_and_none_for_nothing():
    assert sizes(cut_ranges(ranges_of(5, 0, 1))) == [(0, 5), (2, 1)]


def test_min_partitions_cuts_in_proportion():
    assert sizes(cut_ranges(ranges_of(10, 30), min_partitions=4)) == [(0, 10), (1, 10), (1, 10), (1, 10)]


def test_min_partitions_below_the_number_of_partitions_changes_nothing():
    assert sizes(cut_ranges(ranges_of(10, 30), min_partitions=2)) == [(0, 10), (1, 30)]


def test_as_many_partitions_as_asked_for_are_enough_however_unequal():
    unequal = ranges_of(800, 200, 1, 1, 1, 1, 1, 1)
    assert cut_ranges(unequal, min_partitions=8) == unequal


def test_ranges_that_are_all_too_short_to_cut_stay_whole():
    assert sizes(cut_ranges(ranges_of(10, 10, 10), min_partitions=4)) == [(0, 10), (1, 10), (2, 10)]


def test_short_ranges_do_not_take_from_the_share_of_long_ones():
    cut = cut_ranges(ranges_of(1, 1, 98), min_partitions=6)
    assert sizes(cut)[:2] == [(0, 1), (1, 1)]
    assert [size for _, size in sizes(cut)[2:]] == [24, 25, 24, 25]


def test_no_part_is_empty_however_many_are_asked_for():
    assert sizes(cut_ranges(ranges_of(2), min_partitions=9)) == [(0, 1), (0, 1)]


def test_max_records_bounds_every_part():
    assert sizes(cut_ranges(ranges_of(10, 3), max_records_per_partition=4)) == [(0, 3), (0, 3), (0, 4), (1, 3)]


def test_max_records_comes_before_min_partitions():
    assert len(cut_ranges(ranges_of(10, 3), min_partitions=8, max_records_per_partition=4)) >= 8


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=8),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(1, 3_000)),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_the_parts_cover_the_whole(lengths, min_partitions, max_records):
    whole = [OffsetRange("t", p, 7, 7 + size) for p, size in enumerate(lengths)]
    cut = cut_ranges(whole, min_partitions, max_records)
    for r in whole:
        parts = [part for part in cut if part.partition == r.partition]
        assert all(part.size > 0 for part in parts)
        assert [p.start for p in parts[1:]] == [p.end for p in parts[:-1]]
        assert (not parts and not r.size) or (parts[0].start, parts[-1].end) == (r.start, r.end)
    if max_records is not None:
        assert all(part.size <= max_records for part in cut)
