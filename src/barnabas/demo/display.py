"""Shows the results on the terminal: live while the demo runs, and as tables at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barnabas.demo import answers
from barnabas.demo.feeder import FeedProgress
from barnabas.demo.pipeline import Pipeline, QueryProgress
from barnabas.demo.results import Row

_REFRESH_S = 0.5
_PLAIN_LINE_EVERY_S = 5.0


class Clock:
    """Shows how long something has taken, while it runs: a line that counts on a terminal, a single line elsewhere.

    Use it as a context manager. It draws on a copy of standard output: Spark's start redirects the original into its log.
    """

    def __init__(self, console: Console, what: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._what = what
        self._clock = clock
        self._began_s = clock()
        self._live: Live | None = None
        self._copy: TextIO | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._copy = os.fdopen(os.dup(self._console.file.fileno()), "w")
            console = Console(file=self._copy, force_terminal=True)
            self._live = Live(
                console=console,
                get_renderable=self.line,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        else:
            self._console.print(f"{self._what()} …")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None and self._copy is not None:
            self._live.stop()
            self._copy.close()

    def line(self) -> Text:
        """Return the line as it is now."""
        return Text(f"{self._clock() - self._began_s:5.1f} s  {self._what()} …", style="bold")


class Progress:
    """Shows the progress: a live page on a terminal, a line every few seconds elsewhere.

    Use it as a context manager. Call `show` at any rate: it limits how often it draws. The clock is in seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._began_s = clock()
        self._next_s = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, feed: FeedProgress, pipeline: Pipeline) -> None:
        """Draw the current state, if it is time for the next drawing."""
        now_s = self._clock()
        if now_s < self._next_s:
            return
        elapsed_s = now_s - self._began_s
        if self._live is not None:
            self._next_s = now_s + _REFRESH_S
            self._live.update(_page(elapsed_s, feed, pipeline))
        else:
            self._next_s = now_s + _PLAIN_LINE_EVERY_S
            lines = next((query.rows for query in pipeline.progress() if query.name == "revenue"), 0)
            self._console.print(_fed(elapsed_s, feed), f"through the pipeline: {lines:,} lines", sep="; ")


def print_answers(console: Console, pipeline: Pipeline) -> None:
    """Print all tables and the totals."""
    revenue = pipeline.revenue.rows()
    outcomes = pipeline.outcomes.rows()
    console.print(Columns([_countries(revenue, 12), _sellers(pipeline, 12)], padding=(0, 4)))
    console.print(Columns([_minutes(revenue, 6), _stock(pipeline, 6), _payments(pipeline)], padding=(0, 4)))
    console.print(Columns([_suspicious("Large order lines", pipeline.large_lines.rows())]))
    console.print(Columns([_suspicious("Taken back within the hour", pipeline.taken_back.rows())]))
    console.print(_set_aside(outcomes))
    total = sum(row["amount_thousandths"] for row in revenue)
    bad = sum(each.lines for each in answers.set_aside(outcomes))
    console.print(
        f"[bold]{answers.clean_lines(outcomes):,}[/] clean lines, [bold]{bad:,}[/] set aside; "
        f"revenue [bold]{_money(total)}[/]; {pipeline.dropped():,} rows too late for their window"
    )


def print_places(console: Console, pipeline: Pipeline, folder: Path, chart: Path, input_name: str) -> None:
    """Print where each file is."""
    places = Table.grid(padding=(0, 2))
    for what, where in (
        ("input", input_name),
        ("chart", chart),
        ("clean lines", f"{pipeline.clean_lines}/ (parquet)"),
        ("dead letters", f"{pipeline.dead_letters}/ (parquet, with the reason)"),
        ("results", f"{folder / 'results'}/ (parquet)"),
        ("broker's log", f"{folder / 'broker'}/"),
        ("Spark's log", folder / "spark.log"),
    ):
        places.add_row(Text(what, style="dim"), Text(str(where)))
    console.print(places)


def _page(elapsed_s: float, feed: FeedProgress, pipeline: Pipeline) -> RenderableType:
    revenue = pipeline.revenue.rows()
    return Group(
        Text(_fed(elapsed_s, feed), style="bold"),
        _queries(pipeline.progress()),
        Columns([_countries(revenue, 8), _sellers(pipeline, 8)], padding=(0, 4)),
        _suspicious("Large order lines", pipeline.large_lines.rows(), 5),
    )


def _fed(elapsed_s: float, feed: FeedProgress) -> str:
    state = "all sent" if feed.done else "feeding"
    return (
        f"{elapsed_s:5.1f} s  {state}: {feed.lines:,} order lines, {feed.events:,} events, the shop's clock {feed.at}"
    )


def _queries(progress: Iterable[QueryProgress]) -> Table:
    table = _table("Queries", "query", ">batches", ">rows read", ">last batch", ">rows/s")
    for query in progress:
        cells = (f"{query.batches:,}", f"{query.rows:,}", f"{query.last_batch_s:.1f} s", f"{query.rows_per_s:,.0f}")
        table.add_row(query.name, *cells)
    return table


def _countries(revenue: list[Row], count: int) -> Table:
    table = _table("Revenue per country", "country", ">lines", ">revenue £")
    for each in answers.revenue_per_country(revenue)[:count]:
        table.add_row(each.country, f"{each.lines:,}", _money(each.amount_thousandths))
    return table


def _sellers(pipeline: Pipeline, count: int) -> Table:
    table = _table("Best sellers", "article", ">pieces", ">revenue £")
    for row in answers.best_sellers(pipeline.best_sellers.rows(), count):
        table.add_row(_short(row["description"]), f"{row['quantity']:,}", _money(row["amount_thousandths"]))
    return table


def _minutes(revenue: list[Row], count: int) -> Table:
    table = _table("Busiest minutes", "minute", ">revenue £")
    minutes = sorted(answers.revenue_per_minute(revenue), key=lambda item: -item[1])
    for minute, amount in minutes[:count]:
        table.add_row(f"{minute:%Y-%m-%d %H:%M}", _money(amount))
    return table


def _stock(pipeline: Pipeline, count: int) -> Table:
    table = _table("Least left in stock", "article", ">left", ">delivered")
    names = {row["stock_code"]: row["description"] for row in pipeline.best_sellers.rows()}
    for row in answers.scarce(pipeline.stock.rows(), count):
        name = names.get(row["stock_code"]) or row["stock_code"]
        table.add_row(_short(name, 24), f"{row['level']:,}", f"{row['delivered']:,}")
    return table


def _payments(pipeline: Pipeline) -> Table:
    table = _table("Payments", "state", ">payments", ">amount £")
    for state, (count, amount) in answers.payments_by_state(pipeline.payments.rows()).items():
        table.add_row(state, f"{count:,}", _money(amount))
    return table


def _suspicious(title: str, rows: Sequence[Row], count: int = 8) -> Table:
    table = _table(f"{title} ({len(rows)})", "order", "at", "customer", ">pieces", "article", ">amount £")
    for row in answers.largest(rows, count):
        customer = str(row["customer"] or "unknown").removesuffix(".0")
        what = _short(row["description"])
        money = _money(row["amount_thousandths"])
        table.add_row(str(row["order"]), f"{row['at']:%Y-%m-%d %H:%M}", customer, f"{row['quantity']:,}", what, money)
    return table


def _set_aside(outcomes: list[Row]) -> Table:
    table = _table("Lines set aside", "reason", ">lines")
    for each in answers.set_aside(outcomes):
        table.add_row(each.reason, f"{each.lines:,}")
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        # A narrow terminal folds names, never numbers.
        table.add_column(column.lstrip(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _money(thousandths: object) -> str:
    assert isinstance(thousandths, int)
    return f"{thousandths / 1000:,.2f}"


def _short(text: object, width: int = 32) -> str:
    shown = str(text or "")
    return shown if len(shown) <= width else shown[: width - 1] + "…"
