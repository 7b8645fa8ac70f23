"""A Fetch that waits for more bytes (long poll).

Each notification has the number of bytes appended to one of the partitions. When they are enough, the wait is over, and the fetch reads
the partitions again in a later turn of the event loop. So a produce request that fills several partitions wakes the fetch once, and the
producer gets its response first. The count only triggers the read. The read decides whether to respond: records above the last stable
offset, for example, count but are not read.

Source: Kafka's `DelayedFetch`.
"""

from __future__ import annotations

import asyncio

from barnabas.replication.purgatory import DelayedOperation

__all__ = ["DelayedFetch"]


class DelayedFetch(DelayedOperation):
    """Waits for `min_bytes`, or for another change of a partition; its future has no result.

    Attributes:
        bytes: read already, less than `min_bytes`, and appended since.
    """

    __slots__ = ("_min_bytes", "bytes")

    def __init__(self, loop: asyncio.AbstractEventLoop, min_bytes: int, bytes_read: int = 0) -> None:
        super().__init__(loop.create_future())
        self._min_bytes = min_bytes
        self.bytes = bytes_read

    def __repr__(self) -> str:
        return f"<DelayedFetch bytes={self.bytes} min_bytes={self._min_bytes}>"

    def notified(self, amount: int) -> None:
        """Count `amount` appended bytes; -1 if the partition changed in another way."""
        self.bytes = self._min_bytes if amount < 0 else self.bytes + amount
        if self.bytes >= self._min_bytes:
            self.finish(None)

    def expired(self) -> None:
        self.finish(None)
