"""A listening socket and the connections that came in by it. Shell.

- Who may connect, and how many a second, `ConnectionQuotas` says. A connection that must wait is kept open unread, and everybody
  behind it waits too, as behind Kafka's acceptor; the queue is as long as `socket.listen.backlog.size`, and who finds it full is
  closed.
- `socket.request.max.bytes` bounds a request, `RequestMemory` all of them together, `connections.max.idle.ms` silence.
- Idle connections are found by a coarse sweep: the listener counts ticks, a connection notes the tick of its last byte, and
  a connection `TICKS` ticks behind is closed. One timer for all connections, one integer store for each arrival. A connection
  lives therefore between 1.0 and 1.1 times `connections.max.idle.ms`.
- Read buffers are pooled: a connection takes one for each arrival and mostly gives it back before the next one. A buffer that
  grew for large requests stays with its connection; the sweep drops it when it is empty.

Source: Kafka's `SocketServer.Acceptor`, `ConnectionQuotas`, `Selector.maybeCloseOldestConnection`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import deque
from collections.abc import Callable

from barnabas.api.context import ConnectionInfo
from barnabas.api.dispatch import Dispatcher
from barnabas.protocol.framing import READ_BYTES, FrameBuffer
from barnabas.quota.connection_quotas import ConnectionQuotas, Door
from barnabas.server.connection import Connection
from barnabas.server.request_memory import RequestMemory

__all__ = ["Listener"]

log = logging.getLogger(__name__)

TICKS = 10
"""Ticks of silence after which a connection is idle."""

RELEASE_MS = 5_000
"""How often empty buffers are taken back from connections."""

SPARE_BUFFERS = 8
"""Read buffers kept for the next arrivals."""


class Listener:
    """One listener.

    Args:
        name: the listener's name in `listeners`; Metadata answers with addresses of the same name.
        host: the address to bind; empty for every address. A name is what its clients are taken to have dialled.
        port: 0 picks a free one, see `port` after `start`.
        max_idle_ms: negative for no limit.
        quotas: shared by the listeners of a broker.
        memory: shared as well; None for no bound on all requests together.
        now_ms: any clock in milliseconds, for connection rates.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        name: str = "PLAINTEXT",
        host: str = "",
        port: int = 0,
        max_frame_bytes: int = 104857600,
        max_idle_ms: int = 600_000,
        quotas: ConnectionQuotas | None = None,
        memory: RequestMemory | None = None,
        now_ms: Callable[[], int] | None = None,
        backlog: int = 50,
    ) -> None:
        self.loop = loop
        self._dispatcher: Dispatcher | None = None
        self.name = name
        self.host = host
        self.port = port
        self._is_named = bool(host) and not _is_address(host)
        self.max_frame_bytes = max_frame_bytes
        self.tick = 0
        self._max_idle_ms = max_idle_ms
        self.quotas = quotas or ConnectionQuotas()
        self.memory = memory
        self.on_disconnected: Callable[[str], None] = _nobody_asked
        self.on_room: Callable[[], None] = self.look_for_room
        self.rejected = 0
        self._now_ms = now_ms or (lambda: int(loop.time() * 1000))
        self._backlog = backlog
        self._count = 0
        self._connections: dict[Connection, None] = {}
        self._waiting: deque[Connection] = deque()
        self._door_timer: asyncio.TimerHandle | None = None
        self._closing_later: dict[Connection, asyncio.TimerHandle] = {}
        self._server: asyncio.AbstractServer | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._spare_buffers: list[FrameBuffer] = []

    def __repr__(self) -> str:
        return f"Listener({self.name} on {self.host}:{self.port}, {len(self._connections)} connections)"

    async def bind(self) -> None:
        """Bind and accept; nobody is answered before `serve`.

        The port is known from here on, which the broker needs for its registration, and a client that connects meanwhile
        waits rather than be refused.

        Raises:
            OSError: the address cannot be bound.
        """
        # With a free port to pick, one address family is enough; two would pick two ports.
        host = self.host or ("0.0.0.0" if self.port == 0 else None)
        self._server = await self.loop.create_server(
            lambda: Connection(self), host, self.port, backlog=self._backlog, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def serve(self, dispatcher: Dispatcher) -> None:
        """Answer from now on."""
        self._dispatcher = dispatcher
        for connection in list(self._connections):
            connection.serve(dispatcher)
        if self._max_idle_ms >= 0:
            self._every(max(self._max_idle_ms / TICKS, 1.0), self._sweep_idle)
        self._every(RELEASE_MS, self._release_buffers)

    async def stop(self) -> None:
        """Stop accepting and close every connection."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._server is not None:
            self._server.close()
        if self._door_timer is not None:
            self._door_timer.cancel()
        self.on_room = lambda: None
        waiting = list(self._waiting)
        self._waiting.clear()
        for connection in [*waiting, *self._closing_later, *self._connections]:
            connection.close()

    @property
    def connections(self) -> tuple[Connection, ...]:
        return tuple(self._connections)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def waiting_count(self) -> int:
        """Connections that are not admitted yet."""
        return len(self._waiting)

    # What a connection asks.

    def take_buffer(self) -> FrameBuffer:
        """A read buffer without bytes."""
        return self._spare_buffers.pop() if self._spare_buffers else FrameBuffer(self.max_frame_bytes)

    def give_back(self, buffer: FrameBuffer) -> None:
        """Take back a buffer whose bytes are handled; views of it are no longer valid."""
        if buffer.capacity <= READ_BYTES and len(self._spare_buffers) < SPARE_BUFFERS:
            self._spare_buffers.append(buffer)

    def describe(self, transport: asyncio.BaseTransport) -> ConnectionInfo:
        """Who is on the other side."""
        peer = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname") or (self.host, self.port)
        peer_host, local_host = _plain(peer[0]), _plain(local[0])
        self._count += 1
        connection_id = f"{local_host}:{local[1]}-{peer_host}:{peer[1]}-{self._count}"
        dialled = self.host if self._is_named else local_host
        return ConnectionInfo(connection_id, self.name, peer_host, peer[1], dialled, local[1])

    def arrived(self, connection: Connection) -> None:
        """A connection was made: admit it now, later, or not at all."""
        if self._waiting:
            if len(self._waiting) >= self._backlog:
                self._reject(connection, "too many connections wait already (socket.listen.backlog.size)")
            else:
                self._waiting.append(connection)
            return
        wait_ms = self.quotas.arrive(self.name, self._now_ms())
        if wait_ms or not self.quotas.has_room(self.name):
            self._waiting.append(connection)
            self._wait_at_door(wait_ms)
        else:
            self._admit(connection)

    def _wait_at_door(self, wait_ms: int) -> None:
        if wait_ms:
            self._door_timer = self.loop.call_later(wait_ms / 1000, self._door_opens)

    def _door_opens(self) -> None:
        self._door_timer = None
        self.look_for_room()

    def look_for_room(self) -> None:
        """Admit who waits, in order, as far as rates and room allow."""
        waiting = self._waiting
        while waiting and self._door_timer is None and self.quotas.has_room(self.name):
            self._admit(waiting.popleft())
            if waiting:
                self._wait_at_door(self.quotas.arrive(self.name, self._now_ms()))

    def _admit(self, connection: Connection) -> None:
        admission = self.quotas.admit(self.name, connection.info.peer_host, self._now_ms())
        if admission.door is Door.OPEN:
            self._connections[connection] = None
            if self._dispatcher is not None:
                connection.serve(self._dispatcher)
        elif admission.door is Door.CLOSE_LATER:
            self._closing_later[connection] = self.loop.call_later(admission.wait_ms / 1000, connection.close)
        else:
            self._reject(connection, admission.reason)

    def _reject(self, connection: Connection, reason: str) -> None:
        self.rejected += 1
        log.info("Rejected connection from %s: %s", connection.info.peer_host, reason)
        connection.close()

    def forget(self, connection: Connection) -> None:
        """Count a connection out, wherever it was."""
        if self._connections.pop(connection, self) is None:
            self.quotas.leave(self.name, connection.info.peer_host)
            self.on_disconnected(connection.info.connection_id)
            self.on_room()
        elif (timer := self._closing_later.pop(connection, None)) is not None:
            timer.cancel()
        elif connection in self._waiting:
            was_first = self._waiting[0] is connection
            self._waiting.remove(connection)
            if was_first and self._door_timer is None and self._waiting:
                self._wait_at_door(self.quotas.arrive(self.name, self._now_ms()))
                self.look_for_room()

    def close_silent(self, count: int) -> int:
        """Close up to so many connections, those that were silent longest first; returns how many."""
        by_silence = sorted(self._connections, key=lambda connection: (not connection.is_idle, connection.active_tick))
        for connection in by_silence[:count]:
            connection.abort("more connections than max.connections allows")
        return min(count, len(by_silence))

    # Timers.

    def _every(self, period_ms: float, sweep: object) -> None:
        assert callable(sweep)
        place = len(self._timers)

        def again() -> None:
            sweep()
            self._timers[place] = self.loop.call_later(period_ms / 1000, again)

        self._timers.append(self.loop.call_later(period_ms / 1000, again))

    def _sweep_idle(self) -> None:
        self.tick += 1
        oldest = self.tick - TICKS
        for connection in list(self._connections):
            if connection.active_tick < oldest and connection.is_idle:
                connection.abort("idle for connections.max.idle.ms")

    def _release_buffers(self) -> None:
        for connection in self._connections:
            connection.release_buffer()


def _nobody_asked(connection_id: str) -> None:
    """Nobody wants to know which connections end."""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _plain(host: str) -> str:
    """An IPv4 address that came in by an IPv6 socket, as IPv4."""
    return host.removeprefix("::ffff:") if "." in host else host


def is_free(host: str, port: int) -> bool:
    """Whether a port can be bound now; for a clear line before a start fails half way."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
