"""Work in slices: where one ends, and the result of all."""

from __future__ import annotations

import pytest

from barnabas.metadata import slices
from barnabas.metadata.slices import SliceCount, Slices, at_once


def test_a_slice_ends_when_enough_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "PARTITIONS_PER_SLICE", 4)
    count = SliceCount()
    assert [count.ends() for _ in range(6)] == [False, False, False, True, False, False]
    assert repr(count) == "<SliceCount 2>"
    # One topic with many partitions is not cut; the next slice begins after it.
    assert [count.ends(9), count.ends(3), count.ends(1)] == [True, False, True]


def test_all_slices_at_once_give_the_result() -> None:
    begun: list[int] = []

    def work() -> Slices[str]:
        for number in range(3):
            begun.append(number)
            yield
        return "done"

    assert at_once(work()) == "done"
    assert begun == [0, 1, 2]
