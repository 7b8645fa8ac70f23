"""Counts of the next N requests that a fault meets: in one process, or in several that share a file.

    FILE    one byte for each ticket that was taken

- The file is opened to append: the kernel puts each byte behind the last one, and the position after it is the ticket's number. No two
  processes get the same number, and no lock can be left behind by a process that is killed or paused.
- Tickets beyond the limit are void. A process that gets one takes no more.

Source: POSIX `write` with O_APPEND.
"""

from __future__ import annotations

import os

__all__ = ["FaultTickets", "InjectedFault", "OwnTickets", "Tickets"]

UNLIMITED = -1


class OwnTickets:
    """Tickets that one process takes.

    Args:
        limit: how many are valid; -1 for all.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    def __repr__(self) -> str:
        return f"<OwnTickets {self.taken} of {'all' if self._limit == UNLIMITED else self._limit}>"

    @property
    def is_used_up(self) -> bool:
        """Whether no valid ticket is left."""
        return self.taken == self._limit

    def take(self) -> bool:
        """Take a ticket; return whether it is valid."""
        if self.is_used_up:
            return False
        self.taken += 1
        return True


class FaultTickets:
    """Tickets that several processes take.

    Args:
        path: the file; it is made when the first ticket is taken.
        limit: how many are valid; -1 for all.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
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
            number = os.lseek(file, 0, os.SEEK_CUR)
        finally:
            os.close(file)
        self.is_used_up = self._limit != UNLIMITED and number >= self._limit
        return self._limit == UNLIMITED or number <= self._limit

    @property
    def taken(self) -> int:
        """How many valid tickets were taken, by all processes."""
        try:
            size = os.stat(self._path).st_size
        except FileNotFoundError:
            return 0
        return size if self._limit == UNLIMITED else min(size, self._limit)


Tickets = OwnTickets | FaultTickets
"""The tickets of one fault."""


class InjectedFault:
    """A fault in the answers to clients, as `fail` and `drop_response_after_write` return it."""

    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets

    def __repr__(self) -> str:
        return f"<barnabas.InjectedFault hits={self.hits}>"

    @property
    def hits(self) -> int:
        """How many requests it has met."""
        return self._tickets.taken
