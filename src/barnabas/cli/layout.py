"""The lines of a table on a terminal: which columns are shown, how wide, and where their text goes.

    ┌ all columns fit ──────────────── one line for each row
    │
    └ they do not ── 1. the columns in `below` leave the line: their text stands below the row, indented
                     2. the columns in `hidden_first` leave until the line fits: those without a value, then the first one first
                     3. last resort: the widest text columns are cut with "…"; numbers never are, and the first text
                        column only after the others, because it has the name that a person types next

No line is longer than the terminal, unless numbers alone are, so that none folds. Cells are printable text already.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

ABSENT = "-"
GAP = 2
_INDENT = "  "
_SHORTEST = 6
"""A column is not cut to less than this."""


class Grid(NamedTuple):
    """A table as text.

    Attributes:
        heads: the columns' names.
        rows: a cell for each column, or the items of a list.
        numbers: the places of the columns of numbers, which stand to the right.
        below: the places of the columns whose text may stand below its row.
        hidden_first: the places of the columns that may leave, the first to leave first.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str | Sequence[str]]]
    numbers: frozenset[int] = frozenset()
    below: Sequence[int] = ()
    hidden_first: Sequence[int] = ()


class Layout(NamedTuple):
    """The lines to print; `head` is empty for a vertical table.

    Attributes:
        hidden: the names of the columns that left.
        is_cut: a cell is cut.
    """

    head: str
    lines: list[str]
    hidden: list[str]
    is_cut: bool


def lay_out(grid: Grid, width: int | None) -> Layout:
    """Return the lines of a table whose columns stand side by side.

    Args:
        width: of the terminal; None shows everything, however long the lines are.
    """
    cells = [[_joined(cell) for cell in row] for row in grid.rows]
    places = range(len(grid.heads))
    widths = [max([width_of(grid.heads[place]), *(width_of(row[place]) for row in cells)]) for place in places]
    kept, below, hidden, is_cut = list(places), [], [], False
    if width is not None and _line_width(widths) > width:
        below = list(grid.below)
        leaving = sorted(grid.hidden_first, key=lambda place: any(row[place] != ABSENT for row in cells))
        kept = _kept(widths, [each for each in places if each not in below], leaving, width)
        hidden = [grid.heads[place] for place in places if place not in kept and place not in below]
        texts = [place for place in kept if place not in grid.numbers]
        is_cut = _cut_widths(widths, texts[1:], kept, width) | _cut_widths(widths, texts[:1], kept, width)

    def line(row: Sequence[str]) -> str:
        padded = (_pad(row[each], widths[each], to_the_right=each in grid.numbers) for each in kept)
        return (" " * GAP).join(padded).rstrip()

    lines = []
    for row, cut_row in zip(grid.rows, cells, strict=True):
        lines.append(line(cut_row))
        for place in below:
            if row[place] == ABSENT:
                continue
            assert width is not None
            text, too_long = wrapped(row[place], width - len(_INDENT))
            lines += [_INDENT + each for each in text]
            is_cut |= too_long
    return Layout(line(grid.heads), lines, hidden, is_cut)


def lay_out_vertically(names: Sequence[str], values: Sequence[str | Sequence[str]], width: int | None) -> Layout:
    """Return the lines of one row, a name and its value on each; a long list goes on below itself."""
    first = max(map(width_of, names), default=0) + GAP
    lines: list[str] = []
    is_cut = False
    for name, value in zip(names, values, strict=True):
        if width is None or first + width_of(_joined(value)) <= width:
            text = [_joined(value)]
        else:
            text, too_long = wrapped(value, max(width - first, _SHORTEST))
            is_cut |= too_long
        lines.append((name.ljust(first) + text[0]).rstrip())
        lines += [" " * first + each for each in text[1:]]
    return Layout("", lines, [], is_cut)


def _joined(cell: str | Sequence[str]) -> str:
    return cell if isinstance(cell, str) else ",".join(cell)


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _kept(widths: Sequence[int], places: Sequence[int], hidden_first: Sequence[int], width: int) -> list[int]:
    """Return the columns that stay: those that never leave, and of the others as many as fit, the last to leave first."""
    kept = [place for place in places if place not in hidden_first]
    for place in reversed([each for each in hidden_first if each in places]):
        if _line_width([widths[each] for each in (*kept, place)]) <= width:
            kept.append(place)
    return sorted(kept)


def _cut_widths(widths: list[int], cuttable: Sequence[int], kept: Sequence[int], width: int) -> bool:
    """Make the widest columns narrower until the line fits; return whether any was."""
    is_cut = False
    while _line_width([widths[each] for each in kept]) > width:
        widest = max(cuttable, key=lambda each: widths[each], default=None)
        if widest is None or widths[widest] <= _SHORTEST:
            break
        widths[widest] -= 1
        is_cut = True
    return is_cut


def _pad(cell: str, width: int, *, to_the_right: bool) -> str:
    shown = cut(cell, width)
    space = " " * (width - width_of(shown))
    return space + shown if to_the_right else shown + space


def width_of(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` columns; "…" stands for what is missing."""
    if width_of(text) <= width:
        return text
    used = 1
    for position, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:position] + "…"
    raise AssertionError(text)


def wrapped(cell: str | Sequence[str], width: int) -> tuple[list[str], bool]:
    """Return a cell as lines that end between words, or between the items of a list; and whether a word is cut."""
    words = cell.split(" ") if isinstance(cell, str) else [f"{each}," for each in cell[:-1]] + list(cell[-1:])
    lines = [words[0] if words else ""]
    for word in words[1:]:
        if width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [cut(line, width) for line in lines], any(width_of(line) > width for line in lines)
