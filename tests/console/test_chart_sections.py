"""A chart on a page: no word of it is markup, and programs get all points."""

from __future__ import annotations

from barnabas.console.chart import Point
from barnabas.console.chart_sections import chart_section
from barnabas.console.rendering import Templates
from tests.console.reading import tags

HOSTILE = "<b onload=x>\"'"


def test_its_html_is_escaped_and_has_no_style() -> None:
    section = chart_section("lag", HOSTILE, [Point(0, 1), Point(5000, 2_000)], HOSTILE)
    html = Templates(iso=str).html("sections", sections=[section], time_ms=0)
    assert "<b" not in html
    assert "&lt;b onload=x&gt;" in html
    names = [tag for tag, _ in tags(html)]
    (svg,) = [attributes for tag, attributes in tags(html) if tag == "svg"]
    assert svg["role"] == "img"
    anchors = {attributes["id"] for _, attributes in tags(html) if "id" in attributes}
    assert {svg["aria-labelledby"], svg["aria-describedby"]} <= anchors
    assert (names.count("path"), names.count("details"), names.count("caption")) == (1, 1, 1)
    assert not any("style" in attributes for _, attributes in tags(html))
    assert '<td>00:00:05</td><td class="number">2,000</td>' in html


def test_programs_get_all_points() -> None:
    section = chart_section("lag", "Lag", [Point(0, 1), Point(5000, None)], "records")
    assert section.data == [
        {"time": "1970-01-01T00:00:00.000Z", "lag": 1},
        {"time": "1970-01-01T00:00:05.000Z", "lag": None},
    ]
    assert section.chart is None
    assert section.sentence is not None
    assert section.sentence.startswith("There is no line yet")


def test_values_in_words() -> None:
    section = chart_section("size", "Size", [Point(0, 1500), Point(5000, 0)], "bytes a second", is_bytes=True)
    assert section.chart is not None
    assert [value for _, value in section.chart.rows] == ["0 B", "1.50 kB"]
    section = chart_section("rate", "Rate", [Point(0, 0.125), Point(5, 12.34), Point(9, 3_000)], "records a second")
    assert section.chart is not None
    assert [value for _, value in section.chart.rows] == ["3,000", "12.3", "0.125"]
