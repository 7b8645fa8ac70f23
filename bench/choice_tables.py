"""The tables of docs/choices.md, from what was measured, each between its marks: `<!-- NAME -->` and `<!-- end of NAME -->`.

A cell is the median of the runs, with the least and the greatest if there are several.
"""

from __future__ import annotations

from pathlib import Path

from bench.choice_chart import draw
from bench.choice_rows import PARTITION_COUNTS
from bench.codecs import write
from bench.pieces import Pieces
from bench.report import OURS, THEIRS, TITLES, number

SIDES = (OURS, THEIRS)
NODES = (1, 3, 6)
LABELS = {
    "acks": ("acks",),
    "losses": ("acks",),
    "transactions": ("nodes", "transactions"),
    "partition": ("nodes", "bytes a record"),
    "small": ("nodes", "written by"),
}
FIGURES = {
    "acks": ("MB/s", "p50 ms", "p99 ms"),
    "losses": ("acknowledged", "of these lost", "twice"),
    "transactions": ("MB/s", "CPU s/GB", "p50 ms", "p99 ms"),
    "partition": ("produce MB/s", "consume MB/s", "out of order"),
    "small": ("records/s", "broker CPU µs a record", "read records/s"),
}
LOG_FIGURES = (
    "written MB/s",
    "killed at rest: answers s",
    "killed at rest: log is there s",
    "killed at rest: read MB",
    "killed in a write: answers s",
    "killed in a write: log is there s",
    "killed in a write: read MB",
    "middle by offset ms",
    "middle by offset MB",
    "middle by time ms",
    "middle by time MB",
    "retention: begins later s",
    "retention: files gone s",
    "retention: deleted GB",
    "retention: CPU s",
    "retention: longest answer ms",
)


def write_tables(page: Path, pieces: Pieces) -> None:
    """Rewrite each table for which something was measured, and the picture beside the page."""
    for table in LABELS:
        if pieces.rows(table):
            write(page, table, f"{both_sides(pieces, table)}\n\n{when(pieces, table)}")
    if pieces.rows("scaling"):
        write(page, "scaling", f"{scaling(pieces)}\n\n{when(pieces, 'scaling')}")
        draw(page.with_name("choices-scaling.svg"), curves(pieces))
    if pieces.rows("log"):
        write(page, "log", f"{log(pieces)}\n\n{when(pieces, 'log')}")


def cell(pieces: Pieces, table: str, row: str, side: str, figure: str) -> str:
    """Return a figure as words, or a dash."""
    found = pieces.range(table, row, side, figure)
    if found is None:
        return "–"
    if found.runs == 1 or found.least == found.greatest:
        return number(found.median)
    return f"{number(found.median)} ({number(found.least)} to {number(found.greatest)})"


def when(pieces: Pieces, table: str) -> str:
    """Return a line that says how often, and on which days."""
    ranges = [pieces.range(table, row, side, figure) for row, side, figure in pieces.measured(table)]
    counts = sorted({each.runs for each in ranges if each is not None})
    runs = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"Runs of each row: {runs}; {', '.join(pieces.days(table))}."


def both_sides(pieces: Pieces, table: str) -> str:
    """Return a table with a line for each row and side."""
    labels, figures = LABELS[table], FIGURES[table]
    lines = [
        f"| {' | '.join((*labels, 'broker', *figures))} |",
        f"|{'---|' * (len(labels) + 1)}{'--:|' * len(figures)}",
    ]
    for row in sorted(pieces.rows(table), key=lambda name: _first_number(name)):
        names = row.removeprefix("acks=").split(", ", len(labels) - 1)
        for side in SIDES:
            cells = [cell(pieces, table, row, side, figure) for figure in figures]
            if set(cells) != {"–"}:
                lines.append(f"| {' | '.join((*names, TITLES[side], *cells))} |")
    return "\n".join(lines)


def _first_number(name: str) -> int:
    """Return the number of nodes that a row's name begins with; rows without one stay in their order."""
    first = name.partition(",")[0]
    return int(first) if first.isdigit() else 0


def scaling(pieces: Pieces) -> str:
    """Return MB/s by partitions, a column for each number of nodes and side."""
    columns = [
        (side, nodes)
        for side in SIDES
        for nodes in NODES
        if any(pieces.range("scaling", f"{nodes}, {count}", side, "MB/s") for count in PARTITION_COUNTS)
    ]
    heads = [f"{TITLES[side]}, {nodes} node{'s' * (nodes > 1)}" for side, nodes in columns]
    lines = [f"| partitions | {' | '.join(heads)} |", f"|--:|{'--:|' * len(columns)}"]
    for count in PARTITION_COUNTS:
        cells = [cell(pieces, "scaling", f"{nodes}, {count}", side, "MB/s") for side, nodes in columns]
        lines.append(f"| {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def curves(pieces: Pieces) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """Return the medians of `scaling`: for each side and number of nodes, (partitions, MB/s)."""
    found: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for side in SIDES:
        for nodes in NODES:
            for count in PARTITION_COUNTS:
                if (seen := pieces.range("scaling", f"{nodes}, {count}", side, "MB/s")) is not None:
                    found.setdefault((side, nodes), []).append((count, seen.median))
    return found


def log(pieces: Pieces) -> str:
    """Return the figures of a long log as rows, a column for each side and size."""
    sizes = sorted(pieces.rows("log"), key=float)
    columns = [
        (side, size) for side in SIDES for size in sizes if pieces.range("log", size, side, "written MB/s") is not None
    ]
    heads = [f"{TITLES[side]}, {size} GB" for side, size in columns]
    lines = [f"| figure | {' | '.join(heads)} |", f"|---|{'--:|' * len(columns)}"]
    for figure in LOG_FIGURES:
        cells = [cell(pieces, "log", size, side, figure) for side, size in columns]
        lines.append(f"| {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)
