"""A response with slices of log files on its way to the socket, past the transport.

Bytes leave with `send` and MSG_MORE, slices with `sendfile`: the kernel moves the records from file to socket, and a large
fetch never passes through this process's memory.

    state      the sender waits until               the loop watches
    IDLE       a response has slices                nothing
    DRAINING   the transport has sent its bytes     the transport, whose high-water mark is 0 meanwhile
    FULL       the socket takes bytes again         a duplicate of the socket, because the loop owns the original; without a
                                                    descriptor for a duplicate, a timer

`proceed` moves from any state to the one that fits now: DRAINING if the transport holds bytes, FULL if the socket is full, IDLE if
everything has left.

- The socket's buffer has a fixed size (`socket.send.buffer.bytes`). A buffer that grows by itself takes megabytes at once: on a busy
  machine a consumer then reads a quarter slower.
- A slice's descriptor is read at each step, because its segment may be closed and reopened meanwhile.
- A slice without a file (`fileno` is -1) is read into bytes.
- A transport with TLS gets another sender, `piece_sender`: what goes to the socket past it is not encrypted. `tls_transport` shows no
  socket.

Sources: the measured order of `send` and `sendfile`; `sendfile(2)`.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Self

from barnabas.api.serving.dispatch import Output
from barnabas.net.descriptors import Descriptors
from barnabas.protocol.primitives import RecordSlice

__all__ = ["WRITE_LIMIT", "SliceSender", "encrypts"]

WRITE_LIMIT = 256 * 1024
"""Unsent bytes in the transport above which no further request of this client is handled."""

_LOOK_SECONDS = 0.05
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class _State(Enum):
    IDLE = "idle"
    DRAINING = "draining"
    FULL = "full"


class SliceSender:
    """Sends responses past a connection's transport.

    Args:
        direct: the transport's socket, or a duplicate.
        on_writable: called when the socket takes bytes again; it must call `proceed`. The transport's `resume_writing` must, too.
        descriptors: where the descriptor of a duplicate goes when the sender closes it; None if `direct` is the transport's own.
    """

    __slots__ = (
        "_descriptors",
        "_direct",
        "_look",
        "_loop",
        "_on_writable",
        "_parts",
        "_sent",
        "_state",
        "_transport",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        direct: socket.socket,
        loop: asyncio.AbstractEventLoop,
        on_writable: Callable[[], None],
        descriptors: Descriptors | None,
    ) -> None:
        self._transport = transport
        self._descriptors = descriptors
        self._look: asyncio.TimerHandle | None = None
        self._direct = direct
        self._loop = loop
        self._on_writable = on_writable
        self._parts: deque[bytearray | RecordSlice] = deque()
        # Bytes of the first part that have left.
        self._sent = 0
        self._state = _State.IDLE

    def __repr__(self) -> str:
        return f"<SliceSender {self._state.value} parts={len(self._parts)}>"

    @classmethod
    def over(
        cls,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_writable: Callable[[], None],
        send_buffer_bytes: int,
        descriptors: Descriptors,
    ) -> Self | None:
        """Return a sender for a transport; None if the transport has no socket, as in the simulator, or encrypts.

        Args:
            send_buffer_bytes: the size of the socket's buffer; negative to leave it to the system.
            descriptors: has one for a duplicate of the socket, or none.
        """
        original = transport.get_extra_info("socket")
        if original is None or encrypts(transport) or not hasattr(os, "sendfile"):
            return None
        fd, is_duplicate = original.fileno(), descriptors.take()
        if is_duplicate:
            try:
                fd = os.dup(fd)
            except OSError:
                descriptors.give_back()
                is_duplicate = False
        direct = socket.socket(original.family, original.type, fileno=fd)
        direct.setblocking(False)
        if send_buffer_bytes >= 0:
            direct.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        return cls(transport, direct, loop, on_writable, descriptors if is_duplicate else None)

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait in this process's memory; slices of files do not count."""
        return sum(len(part) for part in self._parts if isinstance(part, bytearray))

    def send(self, output: Output) -> bool:
        """Send a response behind those that are under way. Return and raise as `proceed`."""
        self._parts.extend(output)
        return self._state is _State.IDLE and self.proceed()

    def proceed(self) -> bool:
        """Send what the socket takes now, and return whether everything has left.

        Raises:
            OSError: the socket or a file failed, or a file ends within a slice; close the connection.
        """
        if self._transport.get_write_buffer_size():
            self._enter(_State.DRAINING)
            return False
        try:
            has_left = self._send_parts()
        except BlockingIOError:
            has_left = False
        self._enter(_State.IDLE if has_left else _State.FULL)
        return has_left

    def _enter(self, state: _State) -> None:
        """Have the loop watch what `state` waits for, and nothing else."""
        left, self._state = self._state, state
        if state is left:
            return
        if _State.DRAINING in (left, state):
            self._transport.set_write_buffer_limits(high=0 if state is _State.DRAINING else WRITE_LIMIT)
        if left is _State.FULL:
            self._unwatch()
        if state is _State.FULL:
            self._watch()

    def _watch(self) -> None:
        if self._descriptors is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_again)
        else:
            self._loop.add_writer(self._direct.fileno(), self._on_writable)

    def _unwatch(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None
        elif self._descriptors is not None:
            self._loop.remove_writer(self._direct.fileno())

    def _look_again(self) -> None:
        """Ask whether the socket takes bytes; the loop does not watch a descriptor of its transport for anybody else."""
        poll = select.poll()
        poll.register(self._direct, select.POLLOUT)
        self._watch()
        if poll.poll(0):
            self._on_writable()

    def _send_parts(self) -> bool:
        """Send until the socket takes only a piece, and return whether everything has left; another call would be in vain."""
        parts, direct = self._parts, self._direct
        while parts:
            part = parts[0]
            if isinstance(part, bytearray):
                size = len(part)
                self._sent += direct.send(memoryview(part)[self._sent :], _MSG_MORE if len(parts) > 1 else 0)
            else:
                size = part.size
                self._sent += self._send_slice(part)
            if self._sent < size:
                return False
            parts.popleft()
            self._sent = 0
        return True

    def _send_slice(self, part: RecordSlice) -> int:
        in_fd, rest = part.fileno(), part.size - self._sent
        if in_fd < 0:
            return self._direct.send(part.read()[self._sent :])
        sent = os.sendfile(self._direct.fileno(), in_fd, part.position + self._sent, rest)
        if rest and not sent:
            raise OSError(f"the log ends within a slice of {part.size} bytes at {part.position}")
        return sent

    def close(self) -> None:
        """Drop what is unsent; the connection is lost."""
        self._parts.clear()
        if self._state is _State.FULL:
            self._unwatch()
        self._state = _State.IDLE
        if self._descriptors is None:
            self._direct.detach()
        else:
            self._direct.close()
            self._descriptors.give_back()
            self._descriptors = None


def encrypts(transport: asyncio.Transport) -> bool:
    """Return whether a transport encrypts."""
    return any(transport.get_extra_info(name) is not None for name in ("sslcontext", "ssl_object"))
