"""The events of a simulated world, when and to whom: a page to read after a failure, and a hash that two equal runs share.

`note` writes a line that is read. `witness` only goes into the hash, as every delivery of bytes does: two runs that differ anywhere
have different hashes. `remark` writes a line that is not hashed; `LogLines` makes one of each line that a node logs. Times are
virtual seconds since the world began.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import NamedTuple


class Entry(NamedTuple):
    at: float
    who: str
    what: str
    is_detail: bool

    def __str__(self) -> str:
        return f"{self.at:12.6f}  {self.who:<10}  {self.what}"


class Timeline:
    """The entries of one world in the order they were noted.

    Args:
        time: the world's clock in seconds.
    """

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._hash = hashlib.sha256()
        self.entries: list[Entry] = []

    def __repr__(self) -> str:
        return f"<Timeline entries={len(self.entries)}>"

    def note(self, who: str, what: str, *, is_detail: bool = False) -> None:
        """Write a line: `who` is a node or the network, `what` is a short sentence without a subject.

        Args:
            is_detail: the line is one of very many, as each request is, and is left out of the page unless asked for.
        """
        entry = Entry(self._time(), who, what, is_detail)
        self.entries.append(entry)
        self._hash.update(repr(entry).encode())

    def remark(self, who: str, what: str) -> None:
        """Write a line that is no event of the world, so that the hash stays the same with and without it."""
        self.entries.append(Entry(self._time(), who, what, False))

    def witness(self, *values: object) -> None:
        """Put something into the hash only."""
        self._hash.update(repr((self._time(), *values)).encode())

    def digest(self) -> str:
        """Return the hash of all that was noted and witnessed so far."""
        return self._hash.hexdigest()

    def page(self, *, last: int = 200, details: bool = False) -> str:
        """Return the last lines, one an entry, under a line with the names of the columns."""
        shown = [entry for entry in self.entries if details or not entry.is_detail]
        head = [f"{'seconds':>12}  {'who':<10}  what"]
        if len(shown) > last:
            head.append(f"{'…':>12}  {len(shown) - last:,} earlier lines")
        return "\n".join([*head, *map(str, shown[-last:])])


class LogLines(logging.Handler):
    """Gives what is logged to the node that is running."""

    def emit(self, record: logging.LogRecord) -> None:
        remark = getattr(asyncio._get_running_loop(), "remark", None)
        if remark is not None:
            remark(f"{record.levelname.lower()}: {record.getMessage()}")
