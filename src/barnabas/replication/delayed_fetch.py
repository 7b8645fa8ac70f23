"""A Fetch that waits for more bytes (long poll). Data plane.

A notification tells how many bytes were appended to one of its partitions; once enough have come the partitions are read
again, in a later turn of the event loop: a produce request that fills several partitions then wakes the fetch once, and its
producer is answered first. The read decides, the count only says when reading is worth it (records above the last
stable offset, for example, count but are not read).

Source: Kafka's `DelayedFetch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.replication.fetch_reader import FetchRead
from barnabas.replication.purgatory import DelayedOperation

__all__ = ["DelayedFetch"]


class DelayedFetch(DelayedOperation):
    """Waits for `min_bytes`.

    Args:
        read: reads the partitions again.
        respond: makes the response out of what was read.
        min_bytes: enough to answer.
        bytes_read: what the first read found, less than `min_bytes`.
    """

    __slots__ = ("_bytes", "_is_scheduled", "_loop", "_min_bytes", "_read", "_respond")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        read: Callable[[], FetchRead],
        respond: Callable[[FetchRead], Any],
        min_bytes: int,
        bytes_read: int,
    ) -> None:
        super().__init__(loop.create_future())
        self._loop = loop
        self._read = read
        self._respond = respond
        self._min_bytes = min_bytes
        self._bytes = bytes_read
        self._is_scheduled = False

    def __repr__(self) -> str:
        return f"<DelayedFetch {self._bytes}/{self._min_bytes} bytes>"

    def notified(self, amount: int) -> None:
        """`amount` bytes were appended; -1 when the partition changed in another way."""
        self._bytes = self._min_bytes if amount < 0 else self._bytes + amount
        if self._bytes >= self._min_bytes and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._try_complete)

    def _try_complete(self) -> None:
        self._is_scheduled = False
        if self.is_finished:
            return
        try:
            read = self._read()
            if read.must_respond or read.bytes_read >= self._min_bytes:
                self.finish(self._respond(read))
            else:
                self._bytes = read.bytes_read
        except Exception as error:
            self.fail(error)

    def expired(self) -> None:
        """Answer with what there is, even nothing."""
        self.finish(self._respond(self._read()))
