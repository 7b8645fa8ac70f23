"""The memory that requests on their way in may take together (`queued.max.request.bytes`). Shell.

- A request counts from the moment its size is known until it is handled, with the size that it announces. Those that fit the
  ordinary read buffer (64 KiB) do not count: there is one at most for each connection.
- While any memory is left the next request gets all it asks for, as in Kafka; so the limit is passed by one request at most,
  and a request larger than what is left is not kept waiting by a stream of small ones.
- Who gets none is not read from, and is served in the order of asking when memory comes back.

Source: Kafka's `SimpleMemoryPool`, KIP-72.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

__all__ = ["RequestMemory"]


class _Asker(Protocol):
    def memory_came_back(self) -> None:
        """Ask again."""
        ...


class RequestMemory:
    """Attributes: `used`: bytes given out; `depleted`: how often somebody had to wait."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used = 0
        self.depleted = 0
        self._waiting: OrderedDict[_Asker, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<RequestMemory {self.used}/{self.limit_bytes}, {len(self._waiting)} waiting>"

    def take(self, asker: _Asker, size: int) -> bool:
        """Take memory, or be told by `memory_came_back` when to try again."""
        if self.used < self.limit_bytes:
            self.used += size
            return True
        if asker not in self._waiting:
            self.depleted += 1
            self._waiting[asker] = None
        return False

    def give_back(self, size: int) -> None:
        """Return what was taken; whoever waits asks again, as long as there is memory."""
        self.used -= size
        while self._waiting and self.used < self.limit_bytes:
            asker, _ = self._waiting.popitem(last=False)
            asker.memory_came_back()

    def forget(self, asker: _Asker) -> None:
        """Somebody who waits has left."""
        self._waiting.pop(asker, None)
