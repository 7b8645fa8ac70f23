"""Lines of the broker's own log, which no client can forge.

Group ids, client ids and names of topics come from clients and may hold line ends and a terminal's escape codes. The formatter
escapes the whole line, so that no call of a logger can forget it. The lines of a traceback are indented: none of them, and no line
of an exception's text, begins as a line of the log does. A name may have 32,767 bytes; a line is cut before that.

Values from `config.providers` are left out (`words.hidden_values`).

`barnabas start` uses it, or `json_log_lines`. An embedded broker logs through the handlers of its process.
"""

from __future__ import annotations

import logging

from barnabas.words.hidden_values import without_hidden
from barnabas.words.printable import printable

__all__ = ["LineFormatter", "shortened"]

_INDENT = "    "
_LONGEST = 4000


class LineFormatter(logging.Formatter):
    """Formats a record as time, level, logger and message on one line, with its traceback below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def __repr__(self) -> str:
        return f"<LineFormatter {self._fmt}>"

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return _indented(super().formatException(ei))  # type: ignore[arg-type]

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def shortened(line: str) -> str:
    """Return a line without hidden values, and cut if it is long."""
    line = without_hidden(line)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}… ({len(line) - _LONGEST:,} more characters)"


def _escaped(line: str) -> str:
    line = shortened(line)
    # A backslash in a line without anything to escape, as of a `repr`, needs no second one.
    return line if line.isprintable() else printable(line)


def _indented(text: str) -> str:
    # Not splitlines: it cuts at characters that end no line of a log.
    return "\n".join(_INDENT + _escaped(line) for line in text.split("\n"))
