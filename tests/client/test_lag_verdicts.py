"""The verdict about each window."""

from __future__ import annotations

import pytest

from barnabas.client.lag_verdicts import Sample, Verdict, judge


@pytest.mark.parametrize(
    ("window", "has_members", "verdict"),
    [
        ([], True, "OK"),
        ([(5, 9)], False, "OK"),
        ([(5, 1), (5, 0)], False, "OK"),
        ([(5, 3), (2, 0)], True, "OK"),
        ([(5, 3), (5, 3), (5, 4)], False, "STOP"),
        ([(5, 0), (5, 3), (5, 4)], False, "STOP"),
        ([(5, 0), (5, 3), (5, 4)], True, "OK"),
        ([(5, 3), (5, 3), (5, 3)], True, "STALL"),
        ([(5, 3), (5, 2), (5, 1)], True, "STALL"),
        ([(5, 3), (4, 4), (9, 1)], True, "REWIND"),
        ([(5, 3), (4, 4), (4, 4)], False, "REWIND"),
        ([(5, 0), (4, 1), (9, 1)], True, "OK"),
        ([(5, 3), (6, 3), (7, 3)], True, "WARN"),
        ([(5, 3), (6, 4), (7, 9)], True, "WARN"),
        ([(5, 3), (6, 4), (7, 3)], True, "OK"),
        ([(5, 3), (6, 3), (7, 9)], False, "WARN"),
        ([(5, 9), (5, 9), (7, 7)], True, "OK"),
    ],
)
def test_the_verdict_about_a_window(window: list[tuple[int, int]], has_members: bool, verdict: str) -> None:
    assert judge([Sample(*each) for each in window], has_members=has_members).name == verdict


def test_the_worst_counts() -> None:
    assert max(Verdict.STALL, Verdict.OK, Verdict.REWIND, Verdict.WARN) is Verdict.REWIND
    assert sorted(Verdict) == [Verdict.OK, Verdict.WARN, Verdict.STALL, Verdict.STOP, Verdict.REWIND]
