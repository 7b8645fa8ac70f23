"""The output of commands: tables for people, JSON for programs, behind one interface.

A command gives its result twice, as data and as tables (`Output.show`). JSON prints the data; table prints the tables, styled on a
terminal (rich) and plainly aligned in a pipe, so that `awk` can read it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import click


class Table(NamedTuple):
    """Rows under column names.

    Attributes:
        columns: upper-case names, as rpk and Kafka's tools print them.
        rows: values; None shows as "-", lists joined by commas.
        vertical: one row, printed as a list of names and values.
        title: printed above.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    vertical: bool = False
    title: str | None = None

    def objects(self) -> list[dict[str, object]]:
        """Return the rows as JSON objects; the names are the columns in lower case, with underscores."""
        names = [json_name(column) for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def json_name(column: str) -> str:
    """Return the name of a column's field in JSON."""
    return column.lower().replace("-", "_").replace(" ", "_")


def text(value: object) -> str:
    """Return a value as a table's cell shows it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"
    return str(value)


class Output:
    """Prints in one of two ways; see the subclasses."""

    is_json = False

    def show(self, data: object, *tables: Table) -> None:
        """Print what a command found.

        Args:
            data: everything, for JSON.
            tables: the same for people.
        """
        raise NotImplementedError

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print one table; its JSON is a list of objects."""
        table = Table(columns, list(rows))
        self.show(table.objects(), table)


class JsonOutput(Output):
    """One JSON document."""

    is_json = True

    def show(self, data: object, *tables: Table) -> None:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))


class TableOutput(Output):
    """Columns aligned by spaces, without frames; bold heads on a terminal."""

    def show(self, data: object, *tables: Table) -> None:
        styled = sys.stdout.isatty()
        for index, table in enumerate(tables):
            if index:
                click.echo()
            if table.title:
                click.echo(click.style(table.title, bold=True) if styled else table.title)
            if styled:
                _print_rich(table)
            else:
                _print_plain(table)


def _print_plain(table: Table) -> None:
    lines: list[list[str]]
    if table.vertical:
        lines = [[column, text(value)] for column, value in zip(table.columns, table.rows[0], strict=True)]
    else:
        lines = [list(table.columns), *([text(value) for value in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _print_rich(table: Table) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        box=None, show_header=not table.vertical, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"
    )
    if table.vertical:
        shown.add_column(style="bold", no_wrap=True)
        shown.add_column(overflow="fold")
        for column, value in zip(table.columns, table.rows[0], strict=True):
            shown.add_row(column, Text(text(value)))
    else:
        for index, column in enumerate(table.columns):
            numbers = all(isinstance(row[index], int | float) for row in table.rows) and bool(table.rows)
            shown.add_column(column, overflow="fold", justify="right" if numbers else "left")
        for row in table.rows:
            shown.add_row(*(Text(text(value)) for value in row))
    Console().print(shown)


OUTPUTS: dict[str, type[Output]] = {"table": TableOutput, "json": JsonOutput}
