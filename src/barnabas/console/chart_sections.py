"""Sections with a chart of the last hour: the picture for people, every point for programs."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.console.chart import Point, line_chart
from barnabas.console.page import Section
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.times import format_time_ms


def chart_section(key: str, heading: str, points: Sequence[Point], unit: str, *, is_bytes: bool = False) -> Section:
    """Return a section with a chart, or with a sentence while there are too few points for a line.

    Its data are all points: `time`, and the value under the name `key`; null where it is not known.

    Args:
        unit: in words, such as `records a second`.
        is_bytes: values are written as `1.23 MB`.
    """
    data = [{"time": format_time_ms(each.time_ms), key: each.value} for each in points]
    chart = line_chart(points, unit, _bytes if is_bytes else _number)
    if chart is None:
        sentence = "There is no line yet: it needs two looks with figures, one right after the other."
        return Section(key, heading, data, sentence=sentence)
    return Section(key, heading, data, chart=chart)


def _bytes(value: float) -> str:
    return format_bytes(round(value))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}" if value >= 1 else f"{value:.3g}"
