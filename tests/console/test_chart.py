"""Lines end where a value is not known, and the table has the points that the picture has."""

from __future__ import annotations

import pytest

from barnabas.console.chart import MOST_POINTS, Point, clock, line_chart, round_top

HOUR = 1_700_000_000_000 // 3_600_000 * 3_600_000


def points(*values: float | None, every_ms: int = 5000) -> list[Point]:
    return [Point(HOUR + number * every_ms, value) for number, value in enumerate(values)]


def test_a_line() -> None:
    chart = line_chart(points(0, 10, 5), "records a second", "{:g}".format)
    assert chart is not None
    assert chart.path == "M70 148 L343 26 L616 87"
    assert [each.words for each in chart.ticks_x] == ["22:00:00", "22:00:05", "22:00:10"]
    assert [(each.at, each.words) for each in chart.ticks_y] == [(148, "0"), (87, "5"), (26, "10")]
    assert chart.rows == [("22:00:10", "5"), ("22:00:05", "10"), ("22:00:00", "0")]
    assert chart.described == "From 22:00:00 to 22:00:10 UTC: least 0, most 10, last 5 records a second."


def test_a_label_stands_once() -> None:
    chart = line_chart(points(0, 0), "bytes a second", "{:.0f} B".format)
    assert chart is not None
    assert [each.words for each in chart.ticks_y] == ["0 B", "1 B"]


def test_a_gap_is_not_drawn_over() -> None:
    chart = line_chart(points(1, 1, None, 1, None, 1, 1), "records", "{:g}".format)
    assert chart is not None
    assert chart.path.count("M") == 2
    assert len(chart.dots) == 1
    assert chart.rows[2] == ("22:00:20", "-")
    assert chart.described.endswith("2 gaps: no page was open, or the cluster did not answer.")


def test_a_point_that_begins_a_line() -> None:
    first, second, third, fourth = points(1, 2, 3, 4)
    chart = line_chart([first, second, third._replace(begins=True), fourth], "records", "{:g}".format)
    assert chart is not None
    assert chart.path.count("M") == 2


@pytest.mark.parametrize("values", [(), (1,), (None, None), (1, None, 2)])
def test_no_line(values: tuple[float | None, ...]) -> None:
    assert line_chart(points(*values), "records", str) is None


def test_many_points_become_means_that_stay() -> None:
    values = [float(number) for number in range(720)]
    now = line_chart(points(*values), "records", "{:g}".format)
    later = line_chart(points(*values)[4:], "records", "{:g}".format)
    assert now is not None
    assert later is not None
    assert len(now.rows) == MOST_POINTS
    assert now.rows[0] == ("22:59:55", "717.5")
    assert now.rows[:-1] == later.rows
    assert "Each point is the mean of 20 seconds." in now.described


def test_means_do_not_cross_a_gap() -> None:
    many: list[float | None] = [2.0] * 300
    many[150] = None
    chart = line_chart(points(*many), "records", "{:g}".format)
    assert chart is not None
    assert chart.path.count("M") == 2


def test_the_top_of_the_axis() -> None:
    assert [round_top(each) for each in (0, 0.3, 1, 1.1, 4.9, 99, 100, 2001)] == [1, 0.5, 1, 2, 5, 100, 100, 5000]


def test_times_that_go_back_do_not_raise() -> None:
    assert line_chart([Point(HOUR, 1), Point(HOUR - 5, 1)], "records", str) is not None


def test_a_clock() -> None:
    assert clock(0) == "00:00:00"
