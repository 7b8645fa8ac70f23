"""How requests go on arriving: while others wait for memory, and in general."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.net.arrival import ARRIVAL_SECONDS, LOOK_SECONDS, PACE, PATIENCE_SECONDS, SWEEP_SECONDS, Arrival

SWEEPS = int(ARRIVAL_SECONDS / SWEEP_SECONDS)
STEP = int(PACE * LOOK_SECONDS)


def slow_at(arrived: Iterable[int | None]) -> list[bool]:
    arrival = Arrival()
    return [arrival.is_slow(each) for each in arrived]


def overdue_at(arrived: Iterable[int | None]) -> list[int]:
    arrival = Arrival()
    return [place for place, each in enumerate(arrived) if arrival.is_overdue(each)]


def test_a_request_has_one_look_of_grace_and_must_go_on() -> None:
    assert slow_at([10, 10]) == [False, True]
    assert slow_at([10, 10 + STEP, 10 + 2 * STEP, 10 + 3 * STEP - 1]) == [False, False, False, True]


def test_a_request_that_lies_in_memory_has_patience() -> None:
    looks = int(PATIENCE_SECONDS / LOOK_SECONDS)
    assert slow_at([None] * (looks + 1)) == [False] * looks + [True]
    assert not any(slow_at([10, None, 10, None, 10]))


def test_half_a_request_is_overdue_after_a_minute() -> None:
    assert overdue_at([500] * 20) == [SWEEPS]
    assert overdue_at([500 + place for place in range(20)]) == [SWEEPS], "a byte at a time does not help"


def test_a_large_request_may_take_longer() -> None:
    assert overdue_at([place * 600_000 for place in range(100)]) == []


def test_time_in_which_the_broker_does_not_read_does_not_count() -> None:
    assert overdue_at([500] * (SWEEPS - 1) + [None] + [500] * SWEEPS) == []
