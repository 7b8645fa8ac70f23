"""A Fetch that waits for more bytes (long poll).

Each notification has the number of bytes appended to one of the partitions. When they are enough, the fetch reads the partitions again in
a later turn of the event loop. So a produce request that fills several partitions wakes the fetch once, and the producer gets its
response first. The count only triggers the read. The read decides whether to respond: records above the last stable offset, for example,
count but are not read.

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
        respond: makes the response from a read.
        bytes_read: by the first read, less than `min_bytes`.
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
        return f"<DelayedFetch bytes={self._bytes} min_bytes={self._min_bytes}>"

    def notified(self, amount: int) -> None:
        """Count `amount` appended bytes; -1 if the partition changed in another way."""
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
        """Respond with the available records, or none."""
        self.finish(self._respond(self._read()))
