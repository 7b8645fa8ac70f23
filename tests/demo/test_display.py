"""Tables and chart, drawn from result rows without Spark."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from barnabas.demo.answers import Totals
from barnabas.demo.chart import draw_chart
from barnabas.demo.display import Clock, Progress, print_answers, print_places
from barnabas.demo.feeder import FeedProgress
from barnabas.demo.shop_process import QueryProgress

AT = datetime(2010, 12, 1, 8, 26)
LINE = {
    "order": "7",
    "line": 1,
    "at": AT,
    "customer": None,
    "quantity": 5000,
    "description": "A LAMP",
    "amount_thousandths": 7_000_500,
}


QUERIES = [QueryProgress("checked_orders", "running", 3, 4, 0.5, 17, 2, 1, False)]
TOTALS = Totals(1_234_067, 3, 1)


def table(*rows: dict[str, Any]) -> Any:
    return lambda: list(rows)


@pytest.fixture
def results() -> Any:
    return SimpleNamespace(
        revenue=table(
            {"minute": AT, "country": "UK", "amount_thousandths": 1_234_567, "lines": 2},
            {"minute": AT, "country": "France", "amount_thousandths": -500, "lines": 1},
        ),
        best_sellers=table({"stock_code": "20", "description": None, "quantity": 3, "amount_thousandths": 9000}),
        stock=table({"stock_code": "20", "level": 201, "delivered": 1000}),
        payments=table({"payment": "p", "event": "payment.failed", "amount_thousandths": 5000}),
        outcomes=table({"reason": None, "lines": 3}, {"reason": "the price is zero", "lines": 1}),
        large_lines=table(LINE),
        taken_back=table(),
        records=lambda: 4,
        too_late=lambda: 5_000,
    )


def printed(draw: Any, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    draw(console)
    return console.export_text()


def test_tables(results):
    said = printed(lambda console: print_answers(console, results, TOTALS))
    for words in (
        "UK",
        "1,234.57",
        "-0.50",
        "the price is zero",
        "Large order lines (1)",
        "unknown",
        "7,000.50",
        "failed",
    ):
        assert words in said
    assert "3 clean lines, 1 rejected; revenue 1,234.07; the same sums as straight from the order lines" in said
    assert "5.00 of it came more than a day late" in said


def test_sums_that_differ_are_named(results):
    agrees: list[bool] = []
    said = printed(lambda console: agrees.append(print_answers(console, results, TOTALS._replace(clean=7))))
    assert agrees == [False]
    assert "the order lines say 7, 1 and 1,234.07" in said.replace("\n", " ")


def test_numbers_survive_a_narrow_terminal(results):
    assert "7,000.50" in printed(lambda console: print_answers(console, results, TOTALS), width=70)


def test_places(results):
    said = printed(lambda console: print_places(console, Path("/x"), Path("/x/chart.png"), "seed 1"))
    for where in (
        "/x/spark-warehouse/live.db/",
        "/x/checkpoints/",
        "/x/chart.png",
        "/x/broker/",
        "seed 1",
        "spark-sql -e",
    ):
        assert where in said


def test_progress_outside_a_terminal_is_a_line_every_five_seconds(results):
    now_s = 1000.0

    def draw(console: Console) -> None:
        nonlocal now_s
        with Progress(console, clock=lambda: now_s) as progress:
            for _ in range(100):
                progress.show(FeedProgress(10, 20, "2010-12-01 08:26:00"), results, QUERIES, "")
                now_s += 0.125

    said = printed(draw)
    assert said.count("feeding: 10 order lines, 20 events") == 3, "one every five seconds"
    assert "in the tables: 4" in said.replace("\n", "")


def test_progress_on_a_terminal(results):
    console = Console(width=100, height=40, force_terminal=True, file=io.StringIO(), record=True)
    with Progress(console) as progress:
        progress.show(FeedProgress(10, 20, "2010-12-01 08:26:00", done=True), results, QUERIES, "it starts")


def test_a_clock_elsewhere_is_one_line():
    def draw(console: Console) -> None:
        with Clock(console, lambda: "starting Spark: Java") as clock:
            clock.line()

    assert printed(draw) == "starting Spark: Java …\n"


def test_a_clock_counts_on_a_copy_of_the_terminal(tmp_path):
    now_s, what = 0.0, "Java"
    with (tmp_path / "terminal").open("w") as file:
        console = Console(file=file, force_terminal=True, width=80)
        with Clock(console, lambda: f"starting Spark: {what}", clock=lambda: now_s) as clock:
            now_s, what = 12.34, "query 1 of 6, lines"
            assert clock.line().plain == " 12.3 s  starting Spark: query 1 of 6, lines …"
    assert "12.3 s" in (tmp_path / "terminal").read_text()


@pytest.mark.slow
def test_chart(results, tmp_path):
    draw_chart(results, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_chart_has_linear_axes_with_units_and_marks_what_was_taken_back(results, tmp_path, monkeypatch):
    bulk = LINE | {"country": "UK", "cancelled_at": AT.replace(hour=9), "amount_thousandths": 900_000_000}
    rows = [
        {"minute": AT, "country": "UK", "amount_thousandths": 900_000_000 + 5_000_000, "lines": 2},
        {"minute": AT.replace(hour=9), "country": "UK", "amount_thousandths": -900_000_000 + 3_000_000, "lines": 2},
        {"minute": AT.replace(hour=17), "country": "UK", "amount_thousandths": -1_000_000, "lines": 1},
    ]
    results.revenue, results.taken_back = table(*rows), table(bulk)
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_args, **_options: figures.append(self))
    draw_chart(results, tmp_path / "chart.png")
    days, countries, sellers, hours = figures[0].axes
    assert {axes.get_xscale() for axes in figures[0].axes} | {axes.get_yscale() for axes in figures[0].axes} == {
        "linear"
    }
    assert [bar.get_height() for bar in days.patches] == [7.0], "in thousands, without the bulk order"
    assert (
        "1 large order lines over £900 thousand, cancelled within the hour"
        in days.get_legend().get_texts()[0].get_text()
    )
    assert all("thousand £" in label for label in (days.get_ylabel(), countries.get_xlabel(), sellers.get_xlabel()))
    assert [bar.get_height() for bar in hours.patches][8:10] == [5.0, 3.0]
    assert [text.get_text() for text in hours.texts] == ["below zero at 17: more was cancelled than ordered"]
    assert all(axes.get_title() for axes in figures[0].axes)
