"""The page of the benchmarks keeps the sections that a run has no figures for."""

from __future__ import annotations

from bench.page import SECTIONS, section_of, write_page
from bench.report import CONNECTOR, OURS, THEIRS, Results, Row


def results(theirs: str, ours: list[float], other: list[float]) -> Results:
    found = Results(theirs)
    for side, values in ((OURS, ours), (theirs, other)):
        for value in values:
            found.add(f"row of {theirs}", side, {"MB/s": value})
    return found


def test_a_row_has_the_ratio_of_the_medians_and_the_spread_of_the_pairs():
    row = Row("row of apache-kafka", "MB/s", "20", "10", "2.00", "1.00 .. 3.00")
    assert results(THEIRS, [10, 20, 30], [10, 10, 10]).rows() == [row]


def test_a_figure_that_only_we_have_has_dashes_for_theirs():
    assert results(CONNECTOR, [3], []).rows()[0][2:] == ("3", "–", "–", "–")


def test_a_run_of_one_section_keeps_the_other(tmp_path):
    page = tmp_path / "benchmarks.md"
    (tmp_path / "benchmarks-notes.md").write_text("## What the figures mean\n\nMuch.\n")
    write_page(page, [results(THEIRS, [20], [10]), Results(CONNECTOR)], 3)
    brokers = section_of(page.read_text(), SECTIONS[THEIRS])
    write_page(page, [Results(THEIRS), results(CONNECTOR, [30], [10])], 3)
    write_page(page, [Results(THEIRS), results(CONNECTOR, [40], [10])], 3)
    text = page.read_text()
    assert section_of(text, SECTIONS[THEIRS]).strip() == brokers.strip()
    assert "| row of spark-connector | MB/s | 40 | 10 | **4.00** | 4.00 .. 4.00 |" in text
    assert text.count("| MB/s |") == 2
    assert text.endswith("## What the figures mean\n\nMuch.\n")
