"""The output of commands: tables for people, JSON for programs, behind one interface.

A command gives its result twice, as data and as tables (`Output.show`). JSON prints the data; table prints the tables. In a pipe a
table has every column and is plainly aligned, so that `awk` can read it. On a terminal it never folds: `layout` hides the columns that
do not fit, by the priority that the table declares, a note below says which, and `--wide` shows them.

Everything in a table may come from outside, so every cell and title is made `printable`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.cli.layout import ABSENT, Grid, Layout, lay_out, lay_out_vertically, width_of
from barnabas.cli.wording import counted
from barnabas.words.error_lines import at_spaces
from barnabas.words.printable import printable


class Table(NamedTuple):
    """Rows under column names.

    Attributes:
        columns: upper-case names, as rpk and Kafka's tools print them.
        rows: values; None shows as "-", lists joined by commas.
        vertical: one row, printed as a list of names and values.
        title: printed above.
        hidden_first: the columns that a narrow terminal may hide, the first to be hidden first. The others always stay.
        below: the columns whose text stands below its row when the line is too long: sentences, commands to type, long lists.
        shorter: by column, shorter words for values of it; a terminal that is too narrow for the values shows these.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    vertical: bool = False
    title: str | None = None
    hidden_first: Sequence[str] = ()
    below: Sequence[str] = ()
    shorter: Mapping[str, Mapping[str, str]] = {}

    def objects(self) -> list[dict[str, object]]:
        """Return the rows as JSON objects; the names are the columns in lower case, with underscores."""
        names = [json_name(column) for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class Found(NamedTuple):
    """A command's result: everything, for programs, and the same as tables for people."""

    data: Any
    tables: Sequence[Table]


def found_rows(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    hidden_first: Sequence[str] = (),
    below: Sequence[str] = (),
) -> Found:
    """Return one table whose JSON is a list of objects. `Table` describes the arguments."""
    table = Table(columns, list(rows), hidden_first=hidden_first, below=below)
    return Found(table.objects(), [table])


def json_name(column: str) -> str:
    """Return the name of a column's field in JSON."""
    return column.lower().replace("-", "_").replace(" ", "_")


def text(value: object) -> str:
    """Return a value as a table's cell shows it."""
    cell = _cell(value)
    return cell if isinstance(cell, str) else ",".join(cell)


def _cell(value: object) -> str | list[str]:
    if isinstance(value, list | tuple) and value:
        return [printable(str(each)) for each in value]
    if value is None or value == "" or isinstance(value, list | tuple):
        return ABSENT
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(str(value))


def printable_json(document: str) -> str:
    """Return the same JSON so that a terminal prints and does not obey it: what is not printable is escaped, letters are not."""
    return document if document.isprintable() else _NOT_ASCII.sub(_escaped, document)


_NOT_ASCII = re.compile(r"[^\n -~]")
_NAME = re.compile(r"^[^ ]+")


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable():
        return character
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


class Output:
    """Prints in one of two ways; see the subclasses.

    Args:
        wide: print every column, whatever the terminal's width.
    """

    is_json = False

    def __init__(self, *, wide: bool = False) -> None:
        self.wide = wide

    def show(self, data: object, *tables: Table) -> None:
        """Print what a command found.

        Args:
            data: everything, for JSON.
            tables: the same for people.
        """
        raise NotImplementedError

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        hidden_first: Sequence[str] = (),
        below: Sequence[str] = (),
    ) -> None:
        """Print one table; its JSON is a list of objects. `Table` describes the arguments."""
        self.show_found(found_rows(columns, rows, hidden_first=hidden_first, below=below))

    def show_found(self, found: Found) -> None:
        """Print a result."""
        self.show(found.data, *found.tables)


class JsonOutput(Output):
    """One JSON document."""

    is_json = True

    def show(self, data: object, *tables: Table) -> None:
        click.echo(printable_json(json.dumps(data, indent=2, ensure_ascii=False)))


class TableOutput(Output):
    """Columns aligned by spaces, without frames; bold heads on a terminal."""

    def show(self, data: object, *tables: Table) -> None:
        on_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if on_terminal and not self.wide else None
        lines: list[str] = []
        hidden: dict[str, None] = {}
        is_cut = False

        def bold(line: str) -> str:
            return click.style(line, bold=True) if on_terminal else line

        for table in tables:
            if lines:
                lines.append("")
            if table.title:
                lines.append(bold(printable(table.title)))
            layout = _layout(table, width, numbers_to_the_right=on_terminal)
            if layout.head:
                lines += [bold(layout.head), *layout.lines]
            else:
                lines += [_NAME.sub(lambda name: bold(name[0]), line) for line in layout.lines]
            hidden |= dict.fromkeys(layout.hidden)
            is_cut |= layout.is_cut
        if lines:
            click.echo("\n".join(lines))
        if width is not None and (hidden or is_cut):
            click.echo(click.style(note(list(hidden), is_cut, width), dim=True), err=True)


def _layout(table: Table, width: int | None, *, numbers_to_the_right: bool) -> Layout:
    if table.vertical:
        return lay_out_vertically(table.columns, [_cell(value) for value in table.rows[0]], width)
    place = {column: index for index, column in enumerate(table.columns)}
    grid = Grid(
        table.columns,
        [[_cell(value) for value in row] for row in table.rows],
        frozenset(each for each in place.values() if numbers_to_the_right and _is_number(table.rows, each)),
        [place[column] for column in table.below],
        [place[column] for column in table.hidden_first],
    )
    layout = lay_out(grid, width)
    if not any(column in table.shorter for column in layout.hidden):
        return layout
    words = [table.shorter.get(column, {}) for column in table.columns]
    rows = [[short.get(str(value), value) for short, value in zip(words, row, strict=True)] for row in table.rows]
    return lay_out(grid._replace(rows=[[_cell(value) for value in row] for row in rows]), width)


def _is_number(rows: Sequence[Sequence[object]], place: int) -> bool:
    """Return whether a column has numbers, and otherwise only absent values."""
    values = [row[place] for row in rows if row[place] is not None]
    return bool(values) and all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def note(hidden: list[str], is_cut: bool, width: int) -> str:
    """Return what a table does not show, in lines no longer than the terminal is wide."""
    if not hidden:
        return "long values are cut; --wide shows them"
    columns = f"{counted(len(hidden), 'column')} hidden: {', '.join(hidden)}"
    if is_cut:
        return at_spaces(f"{columns}; long values cut; --wide shows all", width, width_of)
    return at_spaces(f"{columns}; --wide shows {'it' if len(hidden) == 1 else 'them'}", width, width_of)


OUTPUTS: dict[str, type[Output]] = {"table": TableOutput, "json": JsonOutput}
