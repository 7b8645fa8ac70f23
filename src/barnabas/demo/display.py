"""Shows the results on the terminal: live while the demo runs, and as tables at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from barnabas.demo import answers
from barnabas.demo.answers import Row, Totals
from barnabas.demo.feeder import FeedProgress
from barnabas.demo.shop_process import QueryProgress

if TYPE_CHECKING:
    from barnabas.demo.results import Results
    from barnabas.demo.service_processes import Served

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

    def show(self, feed: FeedProgress, results: Results, queries: Sequence[QueryProgress], note: str) -> None:
        """Draw the current state, if it is time for the next drawing."""
        now_s = self._clock()
        if now_s < self._next_s:
            return
        elapsed_s = now_s - self._began_s
        if self._live is not None:
            self._live.update(_page(elapsed_s, feed, results, queries, note))
            self._next_s = self._clock() + _REFRESH_S
        else:
            self._next_s = now_s + _PLAIN_LINE_EVERY_S
            through = f"in the tables: {results.records():,}"
            self._console.print("; ".join(filter(None, (_fed(elapsed_s, feed), through, note))))


def print_answers(console: Console, results: Results, expected: Totals) -> bool:
    """Print all tables and the totals; return whether the totals are those of the order lines."""
    revenue = results.revenue()
    outcomes = results.outcomes()
    sellers = results.best_sellers()
    console.print(Columns([_countries(revenue, 12), _sellers(sellers, 12)], padding=(0, 4)))
    console.print(
        Columns([_minutes(revenue, 6), _stock(results, sellers, 6), _payments(results)], padding=(0, 4)),
    )
    console.print(Columns([_suspicious("Large order lines", results.large_lines())]))
    console.print(Columns([_suspicious("Taken back within the hour", results.taken_back())]))
    console.print(_rejected(outcomes))
    found = Totals(
        sum(row["amount_thousandths"] for row in revenue),
        answers.clean_lines(outcomes),
        sum(each.lines for each in answers.set_aside(outcomes)),
    )
    console.print(
        f"[bold]{found.clean:,}[/] clean lines, [bold]{found.rejected:,}[/] rejected; "
        f"revenue [bold]{_money(found.revenue_thousandths)}[/]; "
        + (
            "the same sums as straight from the order lines"
            if found == expected
            else f"[bold red]the order lines say {expected.clean:,}, {expected.rejected:,} "
            f"and {_money(expected.revenue_thousandths)}[/]"
        )
    )
    console.print(
        f"{_money(results.too_late())} of it came more than a day late: it is in the tables, but not in "
        "revenue_windows, whose minutes were closed"
    )
    return found == expected


def print_services(console: Console, done: Served, wanted: Served) -> bool:
    """Print what fulfilment and notifications did; return whether it is what the order lines ask for."""
    console.print(
        f"fulfilment packed [bold]{done.packed:,}[/] pieces and took {done.returned:,} back; notifications sent "
        f"[bold]{done.confirmations:,}[/] confirmations and {done.cancellations:,} cancellations; "
        + (
            "each once, as the order lines say"
            if done == wanted
            else f"[bold red]the order lines say {wanted.packed:,}, {wanted.returned:,}, "
            f"{wanted.confirmations:,} and {wanted.cancellations:,}[/]"
        )
    )
    return done == wanted


def print_places(console: Console, folder: Path, chart: Path, input_name: str) -> None:
    """Print where each file is, and how to ask the tables."""
    places = Table.grid(padding=(0, 2))
    for what, where in (
        ("input", input_name),
        ("chart", chart),
        ("tables", f"{folder / 'spark-warehouse' / 'live.db'}/ (parquet)"),
        ("checkpoints", f"{folder / 'checkpoints'}/"),
        ("the pipeline", f"{folder / 'shop'}/ (yours to change)"),
        ("the services", f"{folder / 'fulfilment.sqlite'}, {folder / 'notifications.sqlite'}"),
        ("broker's log", f"{folder / 'broker'}/"),
        ("Spark's log", folder / "spark.log"),
    ):
        places.add_row(Text(what, style="dim"), Text(str(where)))
    console.print(places)
    console.print("ask the tables:", style="dim")
    for line in (
        f"cd {folder}",
        # Spark's scripts look for the `python3` that has PySpark.
        f"export PATH={Path(sys.executable).parent}:$PATH SPARK_CONF_DIR=$PWD/conf",
        'spark-sql -e "SELECT * FROM live.revenue_by_day"',
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)


def _page(
    elapsed_s: float, feed: FeedProgress, results: Results, queries: Sequence[QueryProgress], note: str
) -> RenderableType:
    return Group(
        Text(_fed(elapsed_s, feed), style="bold"),
        Text(note, style="bold yellow"),
        _queries(queries),
        Columns([_countries(results.revenue(), 8), _sellers(results.best_sellers(), 8)], padding=(0, 4)),
        _suspicious("Large order lines", results.large_lines(), 5),
    )


def _fed(elapsed_s: float, feed: FeedProgress) -> str:
    state = "all sent" if feed.done else "feeding"
    return f"{elapsed_s:5.1f} s  {state}: {feed.lines:,} order lines, {feed.events:,} events, until {feed.at[:16]}"


def _queries(progress: Iterable[QueryProgress]) -> Table:
    table = _table(
        "Queries", "query", "state", ">batch", ">rows read", ">last batch", ">behind", ">too late", ">restarts"
    )
    for query in progress:
        numbers = (query.rows, f"{query.last_batch_s:.1f} s", query.behind, query.dropped, query.restarts)
        cells = (each if isinstance(each, str) else f"{each:,}" for each in numbers)
        table.add_row(query.name, query.state, f"{query.batch:,}" if query.batch >= 0 else "–", *cells)
    return table


def _countries(revenue: list[Row], count: int) -> Table:
    table = _table("Revenue per country", "country", ">lines", ">revenue £")
    for each in answers.revenue_per_country(revenue)[:count]:
        table.add_row(each.country, f"{each.lines:,}", _money(each.amount_thousandths))
    return table


def _sellers(sellers: list[Row], count: int) -> Table:
    table = _table("Best sellers", "article", ">pieces", ">revenue £")
    for row in answers.best_sellers(sellers, count):
        table.add_row(_short(row["description"]), f"{row['quantity']:,}", _money(row["amount_thousandths"]))
    return table


def _minutes(revenue: list[Row], count: int) -> Table:
    table = _table("Busiest minutes", "minute", ">revenue £")
    minutes = sorted(answers.revenue_per_minute(revenue), key=lambda item: -item[1])
    for minute, amount in minutes[:count]:
        table.add_row(f"{minute:%Y-%m-%d %H:%M}", _money(amount))
    return table


def _stock(results: Results, sellers: list[Row], count: int) -> Table:
    table = _table("Least left in stock", "article", ">left", ">delivered")
    names = {row["stock_code"]: row["description"] for row in sellers}
    for row in answers.scarce(results.stock(), count):
        name = names.get(row["stock_code"]) or row["stock_code"]
        table.add_row(_short(name, 24), f"{row['level']:,}", f"{row['delivered']:,}")
    return table


def _payments(results: Results) -> Table:
    table = _table("Payments", "state", ">payments", ">amount £")
    for state, (count, amount) in answers.payments_by_state(results.payments()).items():
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


def _rejected(outcomes: list[Row]) -> Table:
    table = _table("Rejected lines", "reason", ">lines")
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
