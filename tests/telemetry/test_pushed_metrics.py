"""The newest values of clients: gauges replaced, differences added up, bounds, silence."""

from __future__ import annotations

import pytest

from barnabas.telemetry import pushed_metrics
from barnabas.telemetry.otlp import Point
from barnabas.telemetry.pushed_metrics import KEEP_MS, PushedMetrics, Pusher

PUSHER = Pusher("id-1", "app", "java", "4.3")


def point(value: float, name: str = "m", *, is_sum: bool = False, is_delta: bool = False) -> Point:
    return Point(name, (), value, is_sum, is_delta)


def values(pushed: PushedMetrics, name: str = "m") -> list[float]:
    return [value for _, _, value, _ in pushed.by_name().get(name, [])]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (point(5), point(7), 7),
        (point(5, is_sum=True), point(7, is_sum=True), 7),
        (point(5, is_sum=True, is_delta=True), point(7, is_sum=True, is_delta=True), 12),
    ],
    ids=["gauge", "cumulative sum", "sum of differences"],
)
def test_a_later_push_replaces_or_adds(first: Point, second: Point, expected: float) -> None:
    pushed = PushedMetrics()
    for each in (first, second):
        pushed.take(b"1", PUSHER, [each], 1000, 0)
    assert values(pushed) == [expected]


def test_clients_have_their_own_values() -> None:
    pushed = PushedMetrics()
    pushed.take(b"1", PUSHER, [point(1)], 1000, 0)
    pushed.take(b"2", PUSHER, [point(2)], 1000, 0)
    assert values(pushed) == [1, 2]
    assert repr(pushed) == "<PushedMetrics 2 series of 2 clients>"


@pytest.mark.parametrize(("interval_ms", "kept_ms"), [(1000, KEEP_MS), (KEEP_MS, 3 * KEEP_MS)])
def test_a_silent_client_is_forgotten_after_three_intervals_and_five_minutes(interval_ms: int, kept_ms: int) -> None:
    pushed = PushedMetrics()
    pushed.take(b"1", PUSHER, [point(1)], interval_ms, 0)
    pushed.expire(kept_ms - 1)
    assert values(pushed) == [1]
    pushed.expire(kept_ms)
    assert values(pushed) == []
    assert repr(pushed) == "<PushedMetrics 0 series of 0 clients>"


def test_a_client_has_a_bounded_number_of_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed_metrics, "CLIENT_SERIES_MAX", 2)
    pushed = PushedMetrics()
    pushed.take(b"1", PUSHER, [point(1, "a"), point(1, "b"), point(1, "c")], 1000, 0)
    pushed.take(b"1", PUSHER, [point(2, "a"), point(2, "c")], 1000, 0)
    assert (values(pushed, "a"), values(pushed, "c")) == ([2], []), "a known series still changes"
    assert pushed.dropped == 2


def test_all_clients_together_have_a_bounded_number_of_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed_metrics, "SERIES_MAX", 2)
    pushed = PushedMetrics()
    pushed.take(b"1", PUSHER, [point(1, "a"), point(1, "b")], 1000, 0)
    pushed.take(b"2", PUSHER, [point(1, "a")], 1000, 0)
    assert (values(pushed, "a"), pushed.dropped) == ([1], 1)
    pushed.expire(KEEP_MS)
    pushed.take(b"2", PUSHER, [point(1, "a")], 1000, KEEP_MS)
    assert (values(pushed, "a"), pushed.dropped) == ([1], 1), "a forgotten client makes room"
