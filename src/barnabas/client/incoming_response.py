"""The bytes of a response on their way: its memory grows with them.

The size that a peer announces is only a promise. Up to `TRUSTED_BYTES` it is believed; beyond that the buffer is at most twice as large as
what has arrived, as the broker's own buffer for requests (`protocol/framing`). When the response is whole, its buffer is its own: `records`
in it are views of the buffer, and stay valid as long as they are referenced.
"""

from __future__ import annotations

from barnabas.protocol.framing import TRUSTED_BYTES

__all__ = ["IncomingResponse"]


class IncomingResponse:
    """Args: `size` is announced; the response may be empty."""

    __slots__ = ("_arrived", "_view", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrived = 0
        self._view = memoryview(bytearray(min(size, TRUSTED_BYTES)))

    def __repr__(self) -> str:
        return f"<IncomingResponse {self._arrived} of {self.size}>"

    @property
    def is_whole(self) -> bool:
        return self._arrived == self.size

    @property
    def capacity(self) -> int:
        """Bytes of memory held."""
        return len(self._view)

    def room(self) -> memoryview:
        """Return the memory for the next bytes; empty only if the response is whole."""
        if self._arrived == len(self._view) < self.size:
            grown = memoryview(bytearray(min(self.size, 2 * self._arrived)))
            grown[: self._arrived] = self._view
            self._view = grown
        return self._view[self._arrived :]

    def received(self, count: int) -> None:
        """Note that `count` bytes were put into the last memory given."""
        self._arrived += count

    def put(self, arrived: memoryview) -> int:
        """Copy the first of these bytes, as many as belong to the response and have room; returns how many."""
        room = self.room()
        count = min(len(room), len(arrived))
        room[:count] = arrived[:count]
        self._arrived += count
        return count

    def whole(self) -> memoryview:
        """Return all bytes of the response."""
        assert self.is_whole, self
        return self._view
