"""A listener and the connections that it accepted.

- `ConnectionQuotas` decides which connections are admitted, and how many a second. A connection that must wait stays open and is not
  read; later ones queue behind it, as behind Kafka's acceptor. The queue holds `socket.listen.backlog.size` connections; when it is
  full, a new connection is closed.
- `Descriptors` bounds the connections that are open, admitted or not. Beyond it a new connection is closed at once.
- `socket.request.max.bytes` bounds one request, `RequestMemory` all requests being read, `connections.max.idle.ms` silence.
- A coarse sweep finds idle connections: the listener counts ticks, a connection notes the tick of its last byte, and the sweep closes
  a connection that is `TICKS` ticks behind. This costs one timer in all and one integer store for each arrival; an idle connection is
  closed after 1.0 to 1.1 times `connections.max.idle.ms`.
- Read buffers are pooled: a connection takes one for each arrival and usually returns it before the next. A buffer that grew for
  large requests stays with its connection; a sweep drops it once it is empty. The sweep also finds requests that began and do not go
  on arriving.

Source: Kafka's `SocketServer.Acceptor`, `ConnectionQuotas`, `Selector.maybeCloseOldestConnection`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.api.serving.context import ConnectionInfo
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.net.arrival import SWEEP_SECONDS
from barnabas.net.connection import Connection
from barnabas.net.descriptors import Descriptors
from barnabas.net.request_memory import RequestMemory
from barnabas.net.transport_layer import listen
from barnabas.protocol.framing import READ_BYTES, FrameBuffer
from barnabas.quota.connection_quotas import ConnectionQuotas, Door
from barnabas.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from barnabas.net.listener_security import ListenerSecurity

__all__ = ["Listener"]

logger = logging.getLogger(__name__)

TICKS = 10
"""Ticks of silence after which a connection is idle."""

SPARE_BUFFERS = 8
"""Read buffers kept in the pool."""


class Listener:
    """One listener.

    Args:
        name: the listener's name in `listeners`; Metadata returns addresses of the same name.
        host: the address to bind; empty for every address. A host name is taken for the one that clients dialled.
        port: 0 for a free port, which `port` has after `bind`.
        max_idle_ms: negative for no limit.
        quotas: shared by the listeners of a broker.
        memory: shared by the listeners of a broker; None for no bound.
        now_ms: any clock in milliseconds, for connection rates.
        send_buffer_bytes: of the socket of a connection that reads records; negative to leave it to the system.
        lines: the lines of log about peers, shared by the listeners of a broker.
        descriptors: those that connections may use, shared by the listeners of a broker.
        security: what its clients have to do before they are served; None for PLAINTEXT.

    Attributes:
        protocol: the security protocol.
        bound_hosts: the addresses that `bind` has bound; a name has one or more.
        metrics_url: where this broker serves `/metrics`; empty if it does not.
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
        send_buffer_bytes: int = -1,
        lines: RepeatedLines | None = None,
        descriptors: Descriptors | None = None,
        security: ListenerSecurity | None = None,
    ) -> None:
        self.loop = loop
        self._security = security
        self.protocol = "PLAINTEXT" if security is None else security.protocol
        self._dispatcher: Dispatcher | None = None
        self.name = name
        self.host = host
        self.port = port
        self.bound_hosts: tuple[str, ...] = ()
        self._is_named = bool(host) and not _is_address(host)
        self.max_frame_bytes = max_frame_bytes
        self.tick = 0
        self._max_idle_ms = max_idle_ms
        self.quotas = quotas or ConnectionQuotas()
        self.memory = memory
        self.on_disconnected: Callable[[str], None] = _ignore
        self.on_room: Callable[[], None] = self.look_for_room
        self.rejected = 0
        self._now_ms = now_ms or (lambda: int(loop.time() * 1000))
        self._backlog = backlog
        self.send_buffer_bytes = send_buffer_bytes
        self.lines = lines or RepeatedLines(loop)
        self.descriptors = descriptors or Descriptors()
        self.metrics_url = ""
        self._count = 0
        self._connections: dict[Connection, None] = {}
        self._waiting: deque[Connection] = deque()
        self._door_timer: asyncio.TimerHandle | None = None
        self._closing_later: dict[Connection, asyncio.TimerHandle] = {}
        # Closed at once, because no descriptor was left; they end in the next turn of the loop.
        self._refused: set[Connection] = set()
        self._server: asyncio.AbstractServer | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._spare_buffers: list[FrameBuffer] = []

    def __repr__(self) -> str:
        return f"<Listener {self.name} {self.host}:{self.port} connections={len(self._connections)}>"

    async def bind(self) -> None:
        """Bind and accept; no request is answered before `serve`.

        The broker needs the port for its registration, and a client that connects early waits instead of failing.

        Raises:
            OSError: the address cannot be bound.
        """
        made = await listen(self.loop, self._make_connection(), self.host, self.port, self._backlog)
        self._server, self.bound_hosts, self.port = made

    def _make_connection(self) -> Callable[[], asyncio.BaseProtocol]:
        """Return a function that makes the protocol of each socket that is accepted."""
        if self._security is None:
            return lambda: Connection(self)
        # A listener in plain text does not load this module.
        from barnabas.net.secured_connection import secured_connections

        return secured_connections(self, self._security)

    def serve(self, dispatcher: Dispatcher) -> None:
        """Begin to answer requests."""
        self._dispatcher = dispatcher
        for connection in list(self._connections):
            connection.serve(dispatcher)
        if self._max_idle_ms >= 0:
            self._every(max(self._max_idle_ms / TICKS, 1.0), self.sweep_idle)
        self._every(SWEEP_SECONDS * 1000, self.sweep_buffers)

    async def stop(self) -> None:
        """Stop accepting and close every connection."""
        if self._security is not None and self._security.keys is not None:
            self._security.keys.close()
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
        self.lines.close()

    @property
    def connections(self) -> tuple[Connection, ...]:
        return tuple(self._connections)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def waiting_count(self) -> int:
        """The number of connections that wait to be admitted."""
        return len(self._waiting)

    def take_buffer(self) -> FrameBuffer:
        """Return an empty read buffer."""
        return self._spare_buffers.pop() if self._spare_buffers else FrameBuffer(self.max_frame_bytes)

    def give_back(self, buffer: FrameBuffer) -> None:
        """Take back a buffer whose bytes were handled; views of it become invalid."""
        # A connection that has not logged in has a buffer for smaller frames.
        is_usual = buffer.capacity <= READ_BYTES and buffer.max_frame_bytes == self.max_frame_bytes
        if is_usual and len(self._spare_buffers) < SPARE_BUFFERS:
            self._spare_buffers.append(buffer)

    def describe(self, transport: asyncio.BaseTransport) -> ConnectionInfo:
        """Return the addresses of both sides and a new connection id."""
        peer = transport.get_extra_info("peername") or ("", 0)
        local = transport.get_extra_info("sockname") or (self.host, self.port)
        peer_host, local_host = _plain(peer[0]), _plain(local[0])
        self._count += 1
        connection_id = f"{local_host}:{local[1]}-{peer_host}:{peer[1]}-{self._count}"
        dialled = self.host if self._is_named else local_host
        return ConnectionInfo(
            connection_id, self.name, peer_host, peer[1], dialled, local[1], security_protocol=self.protocol
        )

    def arrived(self, connection: Connection) -> None:
        """Admit a new connection now, queue it, or close it."""
        if not self.descriptors.take():
            self._refuse(connection)
            return
        if self._waiting:
            if len(self._waiting) >= self._backlog:
                self._reject(connection, "too many connections are waiting (socket.listen.backlog.size)")
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
        """Admit waiting connections in order, as far as the quotas allow."""
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

    def _refuse(self, connection: Connection) -> None:
        self.rejected += 1
        self._refused.add(connection)
        line = (
            f"Refused a connection from {connection.info.peer_host}: the {self.descriptors.limit:,} descriptors for connections"
            " are in use; the rest are for logs. Raise the limit of open files (ulimit -n)."
        )
        self.lines.log(logger, logging.WARNING, "refused connections", line)
        connection.close()

    def _reject(self, connection: Connection, reason: str) -> None:
        self.rejected += 1
        host = connection.info.peer_host
        self.lines.log(logger, logging.INFO, host, f"Rejected connection from {host}: {reason}")
        connection.close()

    def forget(self, connection: Connection) -> None:
        """Remove a connection that ended, in whichever state it was."""
        if connection in self._refused:
            self._refused.remove(connection)
            return
        self.descriptors.give_back()
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
        """Close up to `count` connections, longest silent first, and return how many were closed."""
        by_silence = sorted(self._connections, key=lambda connection: (not connection.is_idle, connection.active_tick))
        for connection in by_silence[:count]:
            connection.abort("more connections than max.connections allows")
        return min(count, len(by_silence))

    def _every(self, period_ms: float, sweep: object) -> None:
        assert callable(sweep)
        place = len(self._timers)

        def again() -> None:
            sweep()
            self._timers[place] = self.loop.call_later(period_ms / 1000, again)

        self._timers.append(self.loop.call_later(period_ms / 1000, again))

    def sweep_idle(self) -> None:
        """Close the connections that have been idle for too long; a timer calls this."""
        self.tick += 1
        oldest = self.tick - TICKS
        for connection in list(self._connections):
            # As in Kafka, also one that waits for a response: a request that is never answered ends here.
            if connection.active_tick < oldest and not connection.is_muted:
                connection.abort("idle for connections.max.idle.ms")

    def sweep_buffers(self) -> None:
        """Let every connection give back memory that it does not need; a timer calls this."""
        for connection in list(self._connections):
            connection.sweep()


def _ignore(connection_id: str) -> None:
    """Ignore the end of a connection."""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _plain(host: str) -> str:
    """Return an IPv4 address from an IPv6 socket (`::ffff:…`) in its IPv4 form."""
    return host.removeprefix("::ffff:") if "." in host else host
