"""A large response on its way through a transport that encrypts: in pieces, as the socket takes them and the turns of the loop allow.

    parts of a response ── `PIECE` bytes ──► transport.write: encrypted ──► the transport's buffer ──► socket

Each piece is read, encrypted and written in one go, so this process never holds more than `WRITE_LIMIT` and a piece, however large the
response is. The sender stops

- when the transport holds more than `WRITE_LIMIT`: `resume_writing` must call `proceed`, as for `SliceSender`;
- when the turn of the loop is used up (`turns`): the next one goes on.

Transports without encryption have `SliceSender`.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from barnabas.api.serving.dispatch import Output
from barnabas.net.sendfile import WRITE_LIMIT
from barnabas.protocol.primitives import RecordSlice
from barnabas.turns import next_turn_of, spend

__all__ = ["PIECE", "PIECE_COST", "PieceSender"]

PIECE = 64 * 1024
"""Bytes that are read and encrypted at a time: four records of TLS."""

PIECE_COST = 160
"""To read, encrypt and send a piece: microseconds, measured with AES-256-GCM, whose 1.7 s a gigabyte are 110 of them."""


class PieceSender:
    """Sends large responses through a connection's transport.

    Args:
        on_writable: called when there is a turn again; it must call `proceed`. The transport's `resume_writing` must, too.
    """

    __slots__ = ("_has_place", "_loop", "_on_writable", "_parts", "_sent", "_transport")

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, on_writable: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._on_writable = on_writable
        self._parts: deque[bytearray | RecordSlice] = deque()
        # Bytes of the first part that were written.
        self._sent = 0
        # Whether this sender waits for a turn.
        self._has_place = False

    def __repr__(self) -> str:
        return f"<PieceSender parts={len(self._parts)}>"

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait in this process's memory; slices of files do not count."""
        return sum(len(part) for part in self._parts if isinstance(part, bytearray)) - self._sent_of_memory

    @property
    def _sent_of_memory(self) -> int:
        return self._sent if self._parts and isinstance(self._parts[0], bytearray) else 0

    def send(self, output: Output) -> bool:
        """Send a response behind those that are under way. Return and raise as `proceed`."""
        is_idle = not self._parts
        self._parts.extend(output)
        return is_idle and self.proceed()

    def proceed(self) -> bool:
        """Write what fits into the transport and the turn; return whether everything is written.

        Raises:
            OSError: a file failed, or ends within a slice; close the connection.
        """
        parts, transport = self._parts, self._transport
        if transport.is_closing():
            self.close()
        while parts:
            if transport.get_write_buffer_size() > WRITE_LIMIT:
                return False
            if spend(PIECE_COST):
                self._take_place()
                return False
            part = parts[0]
            size = len(part) if isinstance(part, bytearray) else part.size
            if size:
                piece = _piece(part, self._sent, min(PIECE, size - self._sent))
                transport.write(piece)
                self._sent += len(piece)
            if self._sent == size:
                parts.popleft()
                self._sent = 0
        return True

    def _take_place(self) -> None:
        if not self._has_place:
            self._has_place = True
            next_turn_of(self._loop).add_done_callback(self._have_turn)

    def _have_turn(self, _: asyncio.Future[None]) -> None:
        self._has_place = False
        if self._parts:
            self._on_writable()

    def close(self) -> None:
        """Drop what is unsent; the connection is lost."""
        self._parts.clear()
        self._sent = 0


def _piece(part: bytearray | RecordSlice, start: int, size: int) -> memoryview | bytes:
    if isinstance(part, bytearray):
        return memoryview(part)[start : start + size]
    descriptor = part.fileno()
    if descriptor < 0:
        return memoryview(part.read())[start : start + size]
    read = os.pread(descriptor, size, part.position + start)
    if not read:
        raise OSError(f"the log ends within a slice of {part.size} bytes at {part.position}")
    return read
