"""The arithmetic of offsets in two logs."""

from __future__ import annotations

import random

import pytest

from barnabas.mirror.runs import Run, Runs, runs_of


def test_runs_are_rows_in_both_logs() -> None:
    assert runs_of([(10, 0), (11, 1), (12, 2), (15, 4), (16, 5)]) == [Run(10, 0, 3), Run(15, 4, 2)]
    assert runs_of([(10, 0), (11, 2)]) == [Run(10, 0, 1), Run(11, 2, 1)]
    assert runs_of([]) == []


@pytest.mark.parametrize(
    ("source", "target"), [(0, 0), (10, 0), (12, 2), (13, 4), (15, 4), (16, 5), (17, 6), (10**12, 6)]
)
def test_an_offset_becomes_that_of_the_next_record(source: int, target: int) -> None:
    assert Runs([Run(10, 0, 3), Run(15, 4, 2)]).translate(source) == target


def test_without_records_everything_is_at_the_beginning() -> None:
    assert (Runs().translate(7), Runs().end, len(Runs())) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_against_a_search(seed: int) -> None:
    chance = random.Random(seed)
    places: list[tuple[int, int]] = []
    source = target = 0
    for _ in range(chance.randrange(1, 60)):
        source += chance.choice((1, 1, 1, 2, 9))
        target += chance.choice((1, 1, 1, 2))
        places.append((source, target))
    runs = Runs(runs_of(places))
    for offset in range(source + 3):
        expected = next((there for here, there in places if here >= offset), target + 1)
        assert runs.translate(offset) == expected


def test_runs_grow() -> None:
    with pytest.raises(AssertionError):
        Runs([Run(10, 0, 3), Run(12, 3, 1)])
