"""Tables and chart, drawn from result rows without Spark."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from barnabas.demo.chart import draw_chart
from barnabas.demo.display import Progress, print_answers, print_places
from barnabas.demo.feeder import FeedProgress
from barnabas.demo.pipeline import QueryProgress

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


def table(*rows: dict[str, Any]) -> Any:
    return SimpleNamespace(rows=lambda: list(rows))


@pytest.fixture
def pipeline() -> Any:
    return SimpleNamespace(
        revenue=table(
            {"minute": AT, "country": "UK", "amount_thousandths": 1_234_567, "lines": 2},
            {"minute": AT, "country": "France", "amount_thousandths": -500, "lines": 1},
        ),
        best_sellers=table({"stock_code": "20", "description": None, "quantity": 3, "amount_thousandths": 9000}),
        stock=table({"stock_code": "20", "level": 201, "delivered": 1000}),
        payments=table({"payment": "p", "event": "payment.failed", "amount_thousandths": 5000}),
        outcomes=table(
            {"batch": 0, "reason": None, "lines": 3}, {"batch": 0, "reason": "the price is zero", "lines": 1}
        ),
        large_lines=table(LINE),
        taken_back=table(),
        clean_lines=Path("/x/lines"),
        dead_letters=Path("/x/dead-letters"),
        dropped=lambda: 0,
        progress=lambda: [QueryProgress("revenue", 3, 4, 0.5, 8.0)],
    )


def printed(draw: Any, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    draw(console)
    return console.export_text()


def test_tables(pipeline):
    said = printed(lambda console: print_answers(console, pipeline))
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
    assert "3 clean lines, 1 set aside; revenue 1,234.07; 0 rows too late for their window" in said


def test_numbers_survive_a_narrow_terminal(pipeline):
    assert "7,000.50" in printed(lambda console: print_answers(console, pipeline), width=70)


def test_places(pipeline):
    said = printed(lambda console: print_places(console, pipeline, Path("/x"), Path("/x/chart.png"), "seed 1"))
    for where in ("/x/lines/", "/x/dead-letters/", "/x/chart.png", "/x/broker/", "seed 1"):
        assert where in said


def test_progress_outside_a_terminal_is_a_line_every_five_seconds(pipeline):
    now_s = 1000.0

    def draw(console: Console) -> None:
        nonlocal now_s
        with Progress(console, clock=lambda: now_s) as progress:
            for _ in range(100):
                progress.show(FeedProgress(10, 20, "2010-12-01 08:26:00"), pipeline)
                now_s += 0.125

    said = printed(draw)
    assert said.count("feeding: 10 order lines, 20 events") == 3, "one every five seconds"
    assert "through the pipeline: 4 lines" in said.replace("\n", "")


def test_progress_on_a_terminal(pipeline):
    console = Console(width=100, height=40, force_terminal=True, file=io.StringIO())
    with Progress(console) as progress:
        progress.show(FeedProgress(10, 20, "2010-12-01 08:26:00", done=True), pipeline)


@pytest.mark.slow
def test_chart(pipeline, tmp_path):
    draw_chart(pipeline, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
