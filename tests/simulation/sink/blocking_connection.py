"""The client's blocking connection over the simulated network: its own code, on a socket whose waits are the world's.

Each request is announced to the process before it is sent and when its answer has come, so that a fault can strike there.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.errors import cannot_connect
from barnabas.client.wire import BlockingConnection

if TYPE_CHECKING:
    from tests.simulation.sink.process import Process

R = TypeVar("R")
Wait = Callable[[Coroutine[Any, Any, R]], R]


class _Inbox(asyncio.Protocol):
    """The kernel's side of a socket: bytes that have arrived, and how the connection ended."""

    def __init__(self) -> None:
        self.arrived = bytearray()
        self.has_ended = False
        self.error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        self.arrived += data
        self._wake()

    def eof_received(self) -> None:
        self.has_ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended, self.error = True, exc
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def more(self, seconds: float) -> None:
        """Wait until bytes have arrived, or the connection has ended.

        Raises:
            TimeoutError: neither happens in time.
        """
        async with asyncio.timeout(seconds):
            while not self.arrived and not self.has_ended:
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting


class SimulatedSocket:
    """What `BlockingConnection` calls of a socket."""

    def __init__(self, wait: Wait[Any], transport: asyncio.Transport, inbox: _Inbox) -> None:
        self._wait, self._transport, self._inbox = wait, transport, inbox
        self._seconds = 0.0

    def settimeout(self, seconds: float) -> None:
        self._seconds = seconds

    def sendall(self, data: bytes | bytearray) -> None:
        if self._inbox.has_ended:
            raise BrokenPipeError(errno.EPIPE, "broken pipe")
        self._transport.write(bytes(data))

    def recv_into(self, room: memoryview) -> int:
        inbox = self._inbox
        if not inbox.arrived and not inbox.has_ended:
            self._wait(inbox.more(self._seconds))
        count = min(len(room), len(inbox.arrived))
        if not count and inbox.error is not None:
            raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
        room[:count] = inbox.arrived[:count]
        del inbox.arrived[:count]
        return count

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        self._transport.close()


async def _dial(host: str, port: int, seconds: float) -> tuple[asyncio.Transport, _Inbox]:
    async with asyncio.timeout(seconds):
        return await asyncio.get_running_loop().create_connection(_Inbox, host, port)


class SimulatedConnection(BlockingConnection):
    """A connection of a process; the other arguments are those of `BlockingConnection`."""

    def __init__(self, process: Process, host: str, port: int, **arguments: Any) -> None:
        self._process = process
        self._numbers: deque[int] = deque()
        super().__init__(host, port, clock=process.clock, **arguments)

    def _connect(self) -> Any:
        try:
            transport, inbox = self._process.wait(_dial(self.host, self.port, self.timeout_ms / 1000))
        except OSError as error:
            raise cannot_connect(self.address, error, self.timeout_ms) from None
        return SimulatedSocket(self._process.wait, transport, inbox)

    def send(self, message: Any, version: int | None = None, *, highest: int | None = None) -> int:
        name = type(message).__name__.removesuffix("Request")
        number = self._process.before_request(name)
        sent = super().send(message, version, highest=highest)
        self._process.note_request(f"{name} to {self.address}")
        self._process.when_sent(number)
        self._numbers.append(number)
        return sent

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        answer = super().receive(timeout_ms=timeout_ms)
        self._process.when_answered(self._numbers.popleft())
        return answer
