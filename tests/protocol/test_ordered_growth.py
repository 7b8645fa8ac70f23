"""Generations, parents and fences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.ordered_growth import (
    Generation,
    Hold,
    grown_partitions,
    hold_of,
    is_spent,
    read_generations,
    write_generations,
)

ONE = Generation(2, 6, 5, (10, 0))


def test_a_setting_is_read_as_it_was_written() -> None:
    text = "2>6 since=5 fences=10,0; 6>12 since=9"
    assert read_generations(text) == (ONE, Generation(6, 12, 9))
    assert write_generations(read_generations(text)) == text
    assert read_generations("") == () == read_generations("  ")
    assert read_generations("4>8") == (Generation(4, 8),)


def test_words_of_a_newer_release_are_ignored() -> None:
    assert read_generations("2>6 since=5 fences=10,0 colour=red") == (ONE,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("four", "'four' is not two numbers of partitions, such as 4>12"),
        ("4>4", "4 is not a multiple of 4"),
        ("4>6", "6 is not a multiple of 4"),
        ("0>6", "6 is not a multiple of 0"),
        ("2>4 since=x", "since=x is not a time in milliseconds"),
        ("2>4 since=1 fences=1", "fences=1 is not 2 offsets"),
        ("2>4 since=1 fences=1,-2", "fences=1,-2 is not 2 offsets"),
        ("2>4 fences=1,2", "fences need since=, too"),
        ("2>4; 4>8", "2>4 has no fences, and is not the last"),
        ("2>4 since=1 fences=1,2; 2>8", "2>8 cannot follow 2>4"),
        ("2>4;", "'' is not two numbers of partitions, such as 4>12"),
    ],
)
def test_a_wrong_setting_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_generations(text)
    assert str(raised.value) == why


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 6))
def test_a_key_stays_or_moves_to_a_child_of_its_partition(hashed: int, before: int, factor: int) -> None:
    generation = Generation(before, before * factor)
    old, new = hashed % before, hashed % generation.after
    assert new == old or generation.parent_of(new) == old


def test_a_partition_waits_until_the_fence_of_its_parent_is_reached() -> None:
    assert hold_of([ONE], 2, {0: 9}.get) == Hold(0, 10, 9)
    assert hold_of([ONE], 4, {}.get) == Hold(0, 10, None)
    assert hold_of([ONE], 4, {0: 10}.get) is None
    assert hold_of([ONE], 3, {}.get) is None, "its parent had no records"
    assert hold_of([ONE], 1, {}.get) is None, "it is old"
    assert hold_of([ONE], 6, {}.get) is None, "another growth made it"


def test_no_partition_is_free_before_the_fences_are_set() -> None:
    for growth in (Generation(2, 6), Generation(2, 6, 5)):
        assert hold_of([growth], 3, {1: 1_000}.get) == Hold(1, None, 1_000)


def test_the_oldest_fence_of_several_generations_counts() -> None:
    both = (ONE, Generation(6, 12, 9, (20, 30, 0, 0, 0, 0)))
    assert hold_of(both, 6, {0: 9}.get) == Hold(0, 20, 9)
    assert hold_of(both, 8, {2: 5}.get) == Hold(0, 10, None), "2 had no records, but its own parent did"
    assert hold_of(both, 8, {0: 10}.get) is None
    assert hold_of(both, 7, {1: 29}.get) == Hold(1, 30, 29)


def test_the_new_partitions_of_a_topic() -> None:
    both = (ONE, Generation(6, 12))
    assert list(grown_partitions(both, 2)) == []
    assert list(grown_partitions(both, 7)) == [2, 3, 4, 5, 6]


def test_a_growth_below_whose_fences_nothing_is_left_is_spent() -> None:
    assert [is_spent(ONE, starts) for starts in ([9, 0], [10, 0], [11, 3])] == [False, True, True]
    assert not is_spent(Generation(2, 6, 5), [100, 100]), "it has no fences yet"
