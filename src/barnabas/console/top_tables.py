"""The tables of `barnabas top`: those of the console's overview, with more rows, filtered by a part of the name, and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.output import Found, Table, json_name
from barnabas.console.look import Look, largest_topics, latest_groups, rates_found
from barnabas.console.page import Grid, grid, sentence_of
from barnabas.protocol.errors import KafkaError

MOST_ROWS = 500
"""Of topics, and of groups."""


class Tab(NamedTuple):
    """A table of the program.

    Attributes:
        find: returns it; of topics and groups those whose names contain the text.
        empty: the sentence in the place of a table without rows.
    """

    key: str
    title: str
    find: Callable[[Look, Look | None, str], Found | KafkaError | Failure]
    empty: str


def _health(now: Look, before: Look | None, containing: str) -> Found | KafkaError | Failure:
    """Return what is wrong; the summary of the cluster is in the header."""
    if isinstance(now.health, KafkaError | Failure):
        return now.health
    return Found(now.health.data["problems"], now.health.tables[1:])


TABS = (
    Tab(
        "topics", "Largest topics", lambda now, before, text: largest_topics(now, before, text, MOST_ROWS), "No topic."
    ),
    Tab("groups", "Groups by lag", lambda now, _, text: latest_groups(now, text, MOST_ROWS), "No group."),
    Tab("nodes", "Nodes", lambda now, *_: now.nodes, "No node."),
    Tab("health", "Problems", _health, "Nothing is wrong."),
    Tab("held_back", "Held back", lambda now, *_: now.held_back, "No transaction holds readers back."),
)


class Shown(NamedTuple):
    """A table, or the sentence in its place."""

    grid: Grid | None
    sentence: str | None


def shown(tab: Tab, now: Look, before: Look | None, containing: str = "", by: int | None = None) -> Shown:
    """Return a tab's table.

    Args:
        containing: only rows with the text in a cell; of topics and groups, in the name.
        by: the column to sort by, counted around: the largest number first, words from A to Z; None leaves the overview's order.
    """
    found = tab.find(now, before, containing)
    if isinstance(found, KafkaError | Failure):
        return Shown(None, sentence_of(found))
    if not found.tables or not found.tables[0].rows:
        return Shown(None, f"{tab.empty[:-1]} with this text in its name." if containing else tab.empty)
    table = found.tables[0]
    order = list(range(len(table.rows)))
    if by is not None:
        column = by % len(table.columns)
        values = [_value(table, found.data, row, column) for row in order]
        order.sort(key=lambda row: _place(values[row]))
    made = grid(table._replace(rows=[table.rows[row] for row in order]), tab.title, {})
    rows = [row for row in made.rows if not containing or any(containing in cell.text for cell in row)]
    if not rows:
        return Shown(None, "No row has this text.")
    return Shown(made._replace(rows=rows), None)


def header(cluster: str, now: Look, before: Look | None) -> str:
    """Return the state of the cluster as lines: why it does not answer, or its health and its volume."""
    if now.silence is not None:
        return f"{cluster}: {sentence_of(now.silence)}"
    parts = [_in_a_line(now.health), _in_a_line(rates_found(now, before))]
    return "\n".join((cluster, *parts))


def _in_a_line(found: Found | KafkaError | Failure) -> str:
    if isinstance(found, KafkaError | Failure):
        return sentence_of(found)
    made = grid(found.tables[0], "", {})
    return "  ".join(f"{column} {cell.text}" for column, cell in zip(made.columns, made.rows[0], strict=True))


def _value(table: Table, data: Sequence[dict[str, object]], row: int, column: int) -> object:
    """Return a value to sort by: the one for programs, because `1.5 kB` is words."""
    its = data[row]
    name = json_name(table.columns[column])
    return its[name] if name in its else list(its.values())[column] if column < len(its) else table.rows[row][column]


def _place(value: object) -> tuple[int, float, str]:
    if value is None:
        return (2, 0, "")
    if isinstance(value, int | float):
        return (0, -value, "")
    return (1, 0, str(value))
