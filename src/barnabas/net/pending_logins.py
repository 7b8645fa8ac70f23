"""Connections of a listener with TLS or SASL that have not logged in yet: how many are under way, and for how long.

- All together at most `LOGINS_MAX` are under way, of one address at most a tenth. The others wait unread, and cost no more than their
  descriptor.
- Handshake and login have one deadline, which begins when the connection is admitted.

Invariant: a connection is under way or waits from `arrive` to `leave`, once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

__all__ = ["LOGINS_MAX", "LOGIN_SECONDS", "PendingLogins"]

LOGINS_MAX = 1000
"""Logins under way on one listener."""

LOGIN_SECONDS = 10.0
"""How long handshake and login may take together."""


class Pending(Protocol):
    """A connection that has not logged in."""

    @property
    def peer_host(self) -> str: ...
    def begin_login(self) -> None: ...
    def abort(self, reason: str) -> None: ...


class PendingLogins:
    """The logins of one listener.

    Args:
        limit: how many may be under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int = LOGINS_MAX) -> None:
        self._loop = loop
        self._limit = limit
        self._share = max(limit // 10, 1)
        self._deadlines: dict[Pending, asyncio.TimerHandle] = {}
        self._under_way: dict[str, int] = {}
        self._count = 0
        self._waiting: deque[Pending] = deque()

    def __repr__(self) -> str:
        return f"<PendingLogins under_way={self._count} waiting={len(self._waiting)}>"

    def arrive(self, connection: Pending) -> None:
        """Let a connection log in now, or when its turn comes."""
        why = f"the client did not log in within {LOGIN_SECONDS:.0f} s"
        self._deadlines[connection] = self._loop.call_later(LOGIN_SECONDS, connection.abort, why)
        if self._has_room(connection):
            self._begin(connection)
        else:
            self._waiting.append(connection)

    def leave(self, connection: Pending) -> None:
        """Note that a connection has logged in, or has closed; more than once does no harm."""
        deadline = self._deadlines.pop(connection, None)
        if deadline is None:
            return
        deadline.cancel()
        if connection in self._waiting:
            self._waiting.remove(connection)
            return
        host = connection.peer_host
        self._count -= 1
        self._under_way[host] -= 1
        if not self._under_way[host]:
            del self._under_way[host]
        for waiting in self._waiting:
            if self._has_room(waiting):
                self._waiting.remove(waiting)
                self._begin(waiting)
                break

    def _has_room(self, connection: Pending) -> bool:
        return self._count < self._limit and self._under_way.get(connection.peer_host, 0) < self._share

    def _begin(self, connection: Pending) -> None:
        self._count += 1
        self._under_way[connection.peer_host] = self._under_way.get(connection.peer_host, 0) + 1
        connection.begin_login()
