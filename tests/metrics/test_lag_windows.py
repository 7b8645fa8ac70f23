"""The samples that a verdict on `/metrics` is made of."""

from __future__ import annotations

from barnabas.client.lag_verdicts import Sample, Verdict
from barnabas.metrics.lag_windows import SAMPLES_MAX, LagWindows

WHERE = ("group", "orders", 0)


def look(windows: LagWindows, now_s: float, offset: int, lag: int, *, has_members: bool = True) -> Verdict | None:
    found = windows.verdict(WHERE, Sample(offset, lag), int(now_s * 1000), has_members=has_members)
    windows.end_scrape()
    return found


def test_how_often_a_node_is_scraped_does_not_matter() -> None:
    windows = LagWindows()
    found = [look(windows, second, 5, 7) for second in range(61)]
    assert found == [None] * 30 + [Verdict.STALL] * 31


def test_a_window_keeps_the_newest_samples() -> None:
    windows = LagWindows()
    for number in range(SAMPLES_MAX + 2):
        look(windows, 10 * number, 5, 7)
    assert look(windows, 10 * (SAMPLES_MAX + 2), 6, 7) is Verdict.WARN
    for number in range(SAMPLES_MAX):
        last = look(windows, 10 * (SAMPLES_MAX + 3 + number), 6, 7)
        assert last is (Verdict.STALL if number == SAMPLES_MAX - 1 else Verdict.WARN), number


def test_a_partition_that_is_not_in_a_scrape_begins_anew() -> None:
    windows = LagWindows()
    for second in (0, 10, 20, 30):
        last = look(windows, second, 5, 7)
    assert last is Verdict.STALL
    windows.end_scrape()
    assert look(windows, 40, 5, 7) is None


def test_a_clock_that_is_set_back_gives_no_verdict_from_the_future() -> None:
    windows = LagWindows()
    for second in (100, 110, 120):
        look(windows, second, 5, 7)
    assert look(windows, 50, 5, 7) is None
    assert look(windows, 80, 5, 7) is Verdict.STALL
