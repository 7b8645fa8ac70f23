"""Errors on a terminal: nothing in them drives it, a long line goes on below, and no word is cut in two.

    error: topic orders: a topic has no setting retention.mss; did you
      mean retention.ms? (`barnabas topic configs` lists names and
      defaults)

A command in backquotes stays on one line if it fits on a line of its own. A pipe gets the line as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable

from barnabas.words.hidden_values import without_hidden
from barnabas.words.printable import on_one_line

__all__ = ["at_spaces", "error_line"]

_INDENT = "  "
_PIECES = r"(?:`[^`]*`|[^ `]|`)+"


def error_line(text: object, width_of: Callable[[str], int] = len) -> str:
    """Return an error as standard error shows it: one line, or several on a terminal that is too narrow.

    Args:
        text: a sentence; what it echoes of a command line or of another program is escaped here.
        width_of: how many columns a text takes.
    """
    columns = _columns()
    line = f"error: {on_one_line(without_hidden(str(text)))}"
    return line if columns is None else at_spaces(line, columns, width_of)


def at_spaces(line: str, columns: int, width_of: Callable[[str], int] = len) -> str:
    """Return a line, broken at spaces where it is longer than so many columns."""
    if width_of(line) <= columns:
        return line
    lines = [""]
    for piece in re.findall(_PIECES, line):
        # A command that is longer than a line is broken like other words.
        for word in [piece] if width_of(_INDENT + piece) <= columns else piece.split(" "):
            if not lines[-1].strip():
                lines[-1] += word
            elif width_of(f"{lines[-1]} {word}") <= columns:
                lines[-1] += f" {word}"
            else:
                lines.append(_INDENT + word)
    return "\n".join(lines)


def _columns() -> int | None:
    """Return the width of the terminal that standard error is; None if it is none."""
    if not sys.stderr.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or None
    except OSError:
        return shutil.get_terminal_size().columns
