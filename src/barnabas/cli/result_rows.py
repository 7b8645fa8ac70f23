"""The rows of a query's result as a table, as JSON or as CSV.

JSON and CSV are printed while the rows arrive, so a result may be of any size. A table is laid out as a whole: it shows
the first rows, and a note on standard error says so if there are more.

| value | in JSON | in a table and in CSV |
|---|---|---|
| of type JSON | the value itself | its text |
| bytes | text if they are UTF-8, otherwise base64 | the same |
| a time | ISO 8601; in UTC with `Z` | the same |
| a list, a struct, a map | an array, an object | JSON |
"""

from __future__ import annotations

import base64
import csv
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import click

from barnabas.cli.output import JsonOutput, Output, Table, TableOutput, printable_json
from barnabas.words.printable import printable

Rows = Sequence[Sequence[Any]]

TABLE_ROWS = 1_000


class RowsOutput(Output):
    """An output that takes a result page by page."""

    def pages(self, columns: Sequence[str], types: Sequence[str], pages: Iterable[Rows]) -> None:
        """Print a result.

        Args:
            columns: distinct names.
            types: DuckDB's, by column.
            pages: the rows, some at a time.
        """
        raise NotImplementedError


class TableRows(TableOutput, RowsOutput):
    """The first rows as a table."""

    def pages(self, columns: Sequence[str], types: Sequence[str], pages: Iterable[Rows]) -> None:
        rows = list(itertools.islice(itertools.chain.from_iterable(pages), TABLE_ROWS + 1))
        shown = [[_cell(value) for value in row] for row in rows[:TABLE_ROWS]]
        self.show(None, Table(columns, shown, hidden_first=list(columns[:0:-1])))
        if len(rows) > TABLE_ROWS:
            click.echo(f"only the first {TABLE_ROWS:,} rows are shown: -o csv and -o json print all", err=True)


class JsonRows(JsonOutput, RowsOutput):
    """One JSON array of objects, a line for each."""

    def pages(self, columns: Sequence[str], types: Sequence[str], pages: Iterable[Rows]) -> None:
        before = "[\n"
        for row in itertools.chain.from_iterable(pages):
            fields = {name: _field(value, type_) for name, value, type_ in zip(columns, row, types, strict=True)}
            click.echo(before + printable_json(json.dumps(fields, ensure_ascii=False)), nl=False)
            before = ",\n"
        click.echo("[]" if before == "[\n" else "\n]")


class CsvRows(RowsOutput):
    """CSV with a head; an absent value is an empty field."""

    def pages(self, columns: Sequence[str], types: Sequence[str], pages: Iterable[Rows]) -> None:
        safe: Callable[[str], str] = printable if sys.stdout.isatty() else str
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([safe(name) for name in columns])
        for page in pages:
            writer.writerows([["" if value is None else safe(str(_cell(value))) for value in row] for row in page])


ROW_OUTPUTS: dict[str, type[RowsOutput]] = {"table": TableRows, "json": JsonRows, "csv": CsvRows}


def _cell(value: Any) -> object:
    """Return a value as a table and CSV have it."""
    if isinstance(value, list | dict):
        return json.dumps(_plain(value), ensure_ascii=False)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    plain = _plain(value)
    return value if isinstance(plain, int | float) else plain


def _field(value: Any, type_: str) -> object:
    """Return a value as JSON has it."""
    return json.loads(value) if type_ == "JSON" and isinstance(value, str) else _plain(value)


def _plain(value: Any) -> object:
    """Return a value of DuckDB's as one that JSON knows."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return _text(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
    return str(value)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
