"""Connections in memory: bytes arrive later, in pieces, in order, or the connection breaks.

Each connection is two transports joined by pipes. A write is cut at random places and each piece delivered after a random delay, never
out of order, as TCP does. A reset loses what is under way in both directions. Reading can be paused, and a writer sees its buffer grow
meanwhile, so that back-pressure works as with sockets.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

HIGH_WATER = 64 * 1024
FIRST_FREE_PORT = 20_000


class MemoryTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(
        self, network: Network, loop: asyncio.AbstractEventLoop, here: tuple[str, int], there: tuple[str, int]
    ) -> None:
        super().__init__({"peername": there, "sockname": here, "socket": None})
        self._network, self._loop = network, loop
        self._protocol: Any = None
        self._other: MemoryTransport | None = None
        self._incoming: deque[bytes] = deque()
        self._under_way: deque[bytes] = deque()
        self._unsent = 0
        self._arrives_at = 0.0
        self._reading_paused = False
        self._writing_paused = False
        self._closing = False
        self._lost = False
        self._end_of_input = False
        self._high = HIGH_WATER
        self._low = HIGH_WATER // 4

    def join(self, other: MemoryTransport, protocol: Any) -> None:
        self._other, self._protocol = other, protocol

    # --- writing -------------------------------------------------------------------------------------------------

    def write(self, data: Any) -> None:
        if self._closing or self._lost or not len(data):
            return
        rest = bytes(data)
        while rest:
            cut = self._network.piece(len(rest))
            piece, rest = rest[:cut], rest[cut:]
            self._unsent += len(piece)
            self._arrives_at = max(self._arrives_at, self._loop.time() + self._network.delay())
            self._under_way.append(piece)
            # Timers of the same moment fire in no particular order, so each delivers whatever is next.
            self._loop.call_at(self._arrives_at, self._deliver)
        if self._unsent > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(bytes(part) for part in list_of_data))

    def _deliver(self) -> None:
        piece = self._under_way.popleft()
        other = self._other
        if self._lost or other is None or other._lost:
            return
        other._incoming.append(piece)
        other._read()

    def _sent(self, size: int) -> None:
        self._unsent -= size
        if self._writing_paused and self._unsent <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self._unsent

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    # --- reading -------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        while self._incoming and not self._reading_paused and not self._lost:
            piece = self._incoming.popleft()
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                rest = piece
                while rest and not self._lost:
                    buffer = self._protocol.get_buffer(len(rest))
                    size = min(len(buffer), len(rest))
                    buffer[:size] = rest[:size]
                    self._protocol.buffer_updated(size)
                    rest = rest[size:]
            else:
                self._protocol.data_received(piece)
            if self._other is not None:
                self._other._sent(len(piece))
        if self._end_of_input and not self._incoming and not self._reading_paused and not self._lost:
            keep_open = self._protocol.eof_received()
            if not keep_open:
                self.close()

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._loop.call_soon(self._read)

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._lost

    # --- ending --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """What was written still arrives, then the end of input."""
        if self._closing:
            return
        self._closing = True
        self._loop.call_at(max(self._arrives_at, self._loop.time()), self._finish)

    def _finish(self) -> None:
        if self._under_way and not self._lost:
            self._loop.call_soon(self._finish)
            return
        other = self._other
        if other is not None and not other._lost:
            other._end_of_input = True
            other._read()
        self._lose(None)

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def abort(self) -> None:
        other = self._other
        if other is not None:
            other._lose(ConnectionResetError("reset by peer"))
        self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._network.forget(self)
            self._loop.call_soon(self._protocol.connection_lost, error)

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def can_write_eof(self) -> bool:
        return False


class MemorySocket:
    """What `server.sockets[0]` is asked for."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address


class MemoryServer:
    def __init__(self, network: Network, address: tuple[str, int]) -> None:
        self._network, self._address = network, address
        self.sockets = [MemorySocket(address)]

    def close(self) -> None:
        self._network.listeners.pop(self._address, None)
        self.sockets = []

    async def wait_closed(self) -> None:
        return None

    def is_serving(self) -> bool:
        return self._address in self._network.listeners


class Network:
    """All listeners and connections of one simulated world, and its weather."""

    def __init__(self, rng: random.Random, *, max_delay: float = 0.02) -> None:
        self._rng = rng
        self.max_delay = max_delay
        self.listeners: dict[tuple[str, int], tuple[asyncio.AbstractEventLoop, Callable[[], Any]]] = {}
        self._ports = FIRST_FREE_PORT
        self._open: list[MemoryTransport] = []

    def delay(self) -> float:
        return self._rng.random() * self.max_delay

    def piece(self, size: int) -> int:
        """How many bytes of a write travel together: mostly all of them."""
        return size if size < 2 or self._rng.random() < 0.8 else self._rng.randrange(1, size)

    def listen(self, loop: asyncio.AbstractEventLoop, factory: Callable[[], Any], host: str, port: int) -> MemoryServer:
        if not port:
            self._ports += 1
            port = self._ports
        if (host, port) in self.listeners:
            raise OSError(98, "address already in use")
        self.listeners[host, port] = (loop, factory)
        return MemoryServer(self, (host, port))

    async def connect(self, loop: asyncio.AbstractEventLoop, factory: Callable[[], Any], host: str, port: int) -> Any:
        await asyncio.sleep(self.delay())
        found = self.listeners.get((host, port))
        if found is None:
            raise ConnectionRefusedError(111, "connection refused")
        self._ports += 1
        client_address, server_address = ("127.0.0.1", self._ports), (host, port)
        client = MemoryTransport(self, loop, client_address, server_address)
        server = MemoryTransport(self, found[0], server_address, client_address)
        client_protocol, server_protocol = factory(), found[1]()
        client.join(server, client_protocol)
        server.join(client, server_protocol)
        self._open += [client, server]
        server_protocol.connection_made(server)
        client_protocol.connection_made(client)
        return client, client_protocol

    def forget(self, transport: MemoryTransport) -> None:
        if transport in self._open:
            self._open.remove(transport)

    def reset_one(self) -> None:
        """Break one connection, whichever the seed picks."""
        if self._open:
            self._rng.choice(self._open).abort()

    def power_off(self) -> None:
        """The process is gone: nothing listens, and every connection with it."""
        self.listeners.clear()
        self._open.clear()
