"""Long questions are cut, and rests are as long as what was asked before them."""

from __future__ import annotations

from barnabas.console.bites import Bites


class Time:
    """A clock that stands still but for `sleep`, and for what a test adds."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def test_a_rest_between_two_bites_and_none_after_the_last() -> None:
    time = Time()
    bites = Bites(3, rest=2.0, clock=time.clock, sleep=time.sleep)
    seen = []
    for number, each in enumerate(bites.of(range(7))):
        seen.append(each)
        time.now_s += number + 1
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]
    assert time.slept == [2.0, 4.0]


def test_a_small_question_has_no_rest() -> None:
    time = Time()
    bites = Bites(3, clock=time.clock, sleep=time.sleep)
    assert list(bites.of("abc")) == [["a", "b", "c"]]
    assert list(bites.of("abc", 2)) == [["a", "b"], ["c"]]
    assert list(bites.of("")) == []
    assert time.slept == [0.0]


def test_a_rest_by_itself() -> None:
    time = Time()
    bites = Bites(clock=time.clock, sleep=time.sleep)
    time.now_s += 0.5
    bites.rest()
    time.now_s += 0.25
    bites.rest()
    assert time.slept == [0.5, 0.25]
