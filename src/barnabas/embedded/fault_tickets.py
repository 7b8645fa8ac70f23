"""Counts of the next N requests that a fault meets: in one process, or in several that share a file.

    FILE    one byte for each ticket that was taken

- The file is opened to append: the kernel puts each byte behind the last one, and the position after it is the ticket's number. No two
  processes get the same number, and no lock can be left behind by a process that is killed or paused.
- Tickets beyond the limit are void. A process that gets one takes no more.

Source: POSIX `write` with O_APPEND.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

__all__ = ["FaultTickets", "InjectedFault", "OwnTickets", "Tickets"]

UNLIMITED = -1


class OwnTickets:
    """Tickets that one process takes.

    Args:
        limit: how many are valid; -1 for all.
        nth: the first valid one, counted from 1.
    """

    def __init__(self, limit: int, nth: int = 1) -> None:
        self._limit = limit
        self._passed_over = nth - 1
        self._given = 0

    def __repr__(self) -> str:
        return f"<OwnTickets {self.taken} of {'all' if self._limit == UNLIMITED else self._limit}>"

    @property
    def taken(self) -> int:
        """How many valid tickets were taken."""
        return _valid(self._given, self._passed_over, self._limit)

    @property
    def is_used_up(self) -> bool:
        """Whether no valid ticket is left."""
        return self.taken == self._limit

    def take(self) -> bool:
        """Take a ticket; return whether it is valid."""
        if self.is_used_up:
            return False
        self._given += 1
        return self._given > self._passed_over


class FaultTickets:
    """Tickets that several processes take.

    Args:
        path: the file; it is made when the first ticket is taken.
        limit: how many are valid; -1 for all.
        nth: the first valid one, counted from 1.
    """

    def __init__(self, path: str, limit: int = UNLIMITED, nth: int = 1) -> None:
        self._path = path
        self._limit = limit
        self._passed_over = nth - 1
        self.is_used_up = False

    def __repr__(self) -> str:
        return f"<FaultTickets {self.taken} of {'all' if self._limit == UNLIMITED else self._limit}>"

    def take(self) -> bool:
        """Take a ticket; return whether it is valid."""
        if self.is_used_up:
            return False
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            # The folder is gone, and so is the test that wanted the fault.
            self.is_used_up = True
            return False
        try:
            os.write(file, b".")
            number = os.lseek(file, 0, os.SEEK_CUR) - self._passed_over
        finally:
            os.close(file)
        self.is_used_up = self._limit != UNLIMITED and number >= self._limit
        return number > 0 and (self._limit == UNLIMITED or number <= self._limit)

    @property
    def taken(self) -> int:
        """How many valid tickets were taken, by all processes."""
        try:
            size = os.stat(self._path).st_size
        except FileNotFoundError:
            return 0
        return _valid(size, self._passed_over, self._limit)


def _valid(given: int, passed_over: int, limit: int) -> int:
    valid = max(0, given - passed_over)
    return valid if limit == UNLIMITED else min(valid, limit)


Tickets = OwnTickets | FaultTickets
"""The tickets of one fault."""


class InjectedFault:
    """A fault that a test has ordered, as the methods that order one return it.

    Attributes:
        id: its number, from 1 on in the order of the orders.
        settings: what was ordered: `kind`, and what belongs to the kind.
    """

    def __init__(
        self, number: int, settings: Mapping[str, object], tickets: Tickets, remove: Callable[[], None] = lambda: None
    ) -> None:
        self.id = number
        self.settings = dict(settings)
        self._tickets = tickets
        self._remove = remove

    def __repr__(self) -> str:
        return f"<barnabas.InjectedFault id={self.id} kind={self.settings.get('kind')} hits={self.hits}>"

    @property
    def hits(self) -> int:
        """How often it has struck: requests, messages between nodes, calls of a disk; a clock counts each start of its node with it."""
        return self._tickets.taken

    def remove(self) -> None:
        """End this fault and no other one; nothing happens if it has ended."""
        self._remove()
