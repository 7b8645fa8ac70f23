"""The memory that requests being read may take together (`queued.max.request.bytes`).

- A request counts with the size that it announces, from when its size is known until it is handled. Requests that fit the ordinary
  read buffer (64 KiB) do not count: each connection has at most one.
- While any memory is left, the next request gets all it asks for, as in Kafka. At most one request exceeds the limit, and small
  requests cannot starve a large one.
- A connection that gets no memory is not read. When memory is given back, waiting connections get it in the order of asking.

Source: Kafka's `SimpleMemoryPool`, KIP-72.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

__all__ = ["RequestMemory"]


class RequestMemory:
    """The shared memory of one broker.

    Attributes:
        used: bytes taken.
        depleted: how often a connection had to wait.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used = 0
        self.depleted = 0
        self._waiting: OrderedDict[Callable[[], None], None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<RequestMemory {self.used}/{self.limit_bytes} waiting={len(self._waiting)}>"

    def take(self, ask_again: Callable[[], None], size: int) -> bool:
        """Take memory and return True, or have `ask_again` called when memory is given back."""
        if self.used < self.limit_bytes:
            self.used += size
            return True
        if ask_again not in self._waiting:
            self.depleted += 1
            self._waiting[ask_again] = None
        return False

    def give_back(self, size: int) -> None:
        """Give memory back, and let waiting connections ask again while there is memory."""
        self.used -= size
        while self._waiting and self.used < self.limit_bytes:
            ask_again, _ = self._waiting.popitem(last=False)
            ask_again()

    def forget(self, ask_again: Callable[[], None]) -> None:
        """Remove a waiting connection that ended."""
        self._waiting.pop(ask_again, None)
