"""Line charts: points in time become the coordinates of an SVG picture and the rows of a table.

A template draws it, so every word is escaped; there is no script and no style in it. A line ends at a point whose value is not known, and
before a point that begins a line. Where a chart has more than `MOST_POINTS`, all points of a third of a minute become their mean, in the
picture and in the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from barnabas.cli.wording import counted
from barnabas.words.times import format_time_ms

WIDTH, HEIGHT = 640, 190
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 26, 42
"""Margins, with the labels of the axes."""
MOST_POINTS = 180
_MEAN_OF_MS = 20_000
_CLOCK = slice(11, 19)
"""Hours, minutes and seconds within an ISO time."""


class Point(NamedTuple):
    """A value at a time.

    Attributes:
        time_ms: epoch milliseconds.
        value: None if it is not known.
        begins: no line leads to it.
    """

    time_ms: int
    value: float | None
    begins: bool = False


class Tick(NamedTuple):
    """A label of an axis, and where it stands along the axis."""

    at: float
    words: str


class Chart(NamedTuple):
    """A picture of lines, and the same as rows.

    Attributes:
        path: of all lines, in SVG's commands.
        dots: places of points that no line touches.
        unit: in words, at the vertical axis.
        described: what the picture shows, as a sentence.
        rows: clock time in UTC and value in words; the newest first.
    """

    path: str
    dots: Sequence[tuple[float, float]]
    ticks_x: Sequence[Tick]
    ticks_y: Sequence[Tick]
    unit: str
    described: str
    rows: Sequence[tuple[str, str]]

    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def line_chart(points: Sequence[Point], unit: str, words: Callable[[float], str]) -> Chart | None:
    """Return a chart from 0 to a round number; None without two points that a line joins.

    Args:
        unit: such as `records a second`.
        words: writes a value.
    """
    shown = _fewer(points)
    lines = _lines(shown)
    if not any(len(line) > 1 for line in lines):
        return None
    values = [value for line in lines for _, value in line]
    first, last, top = shown[0].time_ms, shown[-1].time_ms, round_top(max(values))

    def place(time_ms: int, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (time_ms - first) / max(1, last - first)
        return round(x, 1), round(_height(value / top), 1)

    drawn = [[place(*each) for each in line] for line in lines]
    path = " ".join("M" + " L".join(f"{x:g} {y:g}" for x, y in line) for line in drawn if len(line) > 1)
    middle = (first + last) // 2
    described = (
        f"From {clock(first)} to {clock(last)} UTC: least {words(min(values))}, most {words(max(values))}, "
        f"last {words(values[-1])} {unit}."
    )
    if len(points) > MOST_POINTS:
        described += f" Each point is the mean of {_MEAN_OF_MS // 1000} seconds."
    if (gaps := len(lines) - 1) > 0:
        described += f" {counted(gaps, 'gap')}: no page was open, or the cluster did not answer."
    return Chart(
        path,
        [line[0] for line in drawn if len(line) == 1],
        [Tick(place(each, 0)[0], clock(each)) for each in (first, middle, last)],
        _ticks_y(top, words),
        unit,
        described,
        [(clock(each.time_ms), "-" if each.value is None else words(each.value)) for each in reversed(shown)],
    )


def round_top(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten that is at least a value; 1 for 0."""
    if value <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(value))
    return next((each * power for each in (1, 2, 5) if each * power >= value), 10 * power)


def clock(time_ms: int) -> str:
    """Return the time of day in UTC: `16:49:05`."""
    return format_time_ms(time_ms)[_CLOCK]


def _ticks_y(top: float, words: Callable[[float], str]) -> list[Tick]:
    """Return the bottom, the middle and the top; half of one byte reads as 0 B, and is left out."""
    bottom, middle, highest = (Tick(_height(part), words(top * part)) for part in (0, 0.5, 1))
    return [bottom, highest] if middle.words in (bottom.words, highest.words) else [bottom, middle, highest]


def _height(part: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part


def _lines(points: Sequence[Point]) -> list[list[tuple[int, float]]]:
    lines: list[list[tuple[int, float]]] = [[]]
    for each in points:
        if each.begins or each.value is None:
            lines.append([])
        if each.value is not None:
            lines[-1].append((each.time_ms, each.value))
    return [each for each in lines if each]


def _fewer(points: Sequence[Point]) -> list[Point]:
    if len(points) <= MOST_POINTS:
        return list(points)
    line, keyed = 0, []
    for each in points:
        line += each.begins
        # A part of the hour, not a number of points: the means of old points stay what they are.
        keyed.append(((line, each.value is None, each.time_ms // _MEAN_OF_MS), each))
    fewer = []
    for _, group in groupby(keyed, key=lambda each: each[0]):
        some = [each for _, each in group]
        values = [each.value for each in some if each.value is not None]
        mean = sum(values) / len(values) if values else None
        fewer.append(Point(some[-1].time_ms, mean, some[0].begins))
    return fewer
