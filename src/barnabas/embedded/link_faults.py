"""Faults in the network between the nodes of one machine, without root: silence and delay, at the connections that a node dials.

    node 1 ── dials ──► node 2      each connection between two nodes is dialled by one of them, and that one does both directions:

    Channel ──► FaultyTransport ──► Pipe "1 to 2" ──► socket      requests
    Channel ◄── FaultyProtocol  ◄── Pipe "2 to 1" ◄── socket      responses

- A cut is silence, as when a cable is pulled: nothing is refused and nothing is closed. Bytes wait until the cut is healed, and then
  arrive, as TCP sends lost bytes again. A new connection is neither made nor refused. The node decides when to give up.
- A cut from 1 to 2 leaves the way from 2 to 1 open: 1 gets the requests of 2 and carries them out, and its responses wait.
- The end of a connection travels like bytes: node 2 does not learn that node 1 has closed one before the cut is healed.
- A delay holds each piece back, in order.
- TLS is above the pipes: a cut holds handshakes and alerts back like other bytes.
- Each piece that a fault holds back is a strike of it, and so is each connection that waits to be made.
- `FaultyLoop` knows the peers by their addresses; connections of clients, and those to other addresses, are not touched.

Limits: a process that is killed during a cut closes its sockets all the same, and the node at the other end sees that
immediately. The kernel acknowledges bytes that wait here, so TCP's own timeouts never end a connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from barnabas.embedded.fault_plan import NO_FAULTS, FaultPlan
from barnabas.embedded.fault_tickets import FaultTickets

__all__ = ["FaultyLoop", "LinkFaults", "Pipe"]


class Pipe:
    """One direction of one connection: it does work immediately, after a delay, or when the way is open again, and always in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, Callable[[], object]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_cut = False
        self._delay_s = 0.0
        self._tickets: Sequence[FaultTickets] = ()

    def __repr__(self) -> str:
        return f"<Pipe cut={self._is_cut} delay={self._delay_s} waiting={len(self._waiting)}>"

    def put(self, work: Callable[[], object]) -> None:
        if self._waiting or self._is_cut or self._delay_s:
            for each in self._tickets:
                each.take()
            self._waiting.append((self._loop.time() + self._delay_s, work))
            self._run()
        else:
            work()

    def change(self, *, is_cut: bool, delay_s: float, tickets: Sequence[FaultTickets] = ()) -> None:
        """Be as the faults of this way say.

        Args:
            tickets: count what waits from now on.
        """
        self._is_cut, self._delay_s, self._tickets = is_cut, delay_s, tickets
        self._run()

    def close(self) -> None:
        """Drop all waiting work."""
        self._waiting.clear()
        self._run()

    def _run(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and not self._is_cut:
            due, work = self._waiting[0]
            if due > self._loop.time():
                self._timer = self._loop.call_at(due, self._run)
                return
            self._waiting.popleft()
            work()


class LinkFaults:
    """The faults of one node's network.

    Args:
        node_id: of the node that runs here.
        peers: the other nodes by their addresses, host and port; a node has several.
    """

    def __init__(self, node_id: int, peers: Mapping[tuple[str, int], int], loop: asyncio.AbstractEventLoop) -> None:
        self._node_id = node_id
        self._peers = peers
        self._loop = loop
        self._plan = NO_FAULTS
        self._tickets: dict[tuple[int, int], tuple[FaultTickets, ...]] = {}
        # Dicts, for their order: the pipes of each connection, and the connections that wait to be made.
        self._pipes: dict[tuple[int, Pipe, Pipe], None] = {}
        self._dialling: dict[asyncio.Future[None], None] = {}

    def __repr__(self) -> str:
        return f"<LinkFaults of={self._node_id} connections={self.connections} dialling={len(self._dialling)}>"

    @property
    def connections(self) -> int:
        """How many connections to peers are open, or end when a cut is healed."""
        return len(self._pipes)

    def peer(self, host: object, port: object) -> int | None:
        """Return the node of the cluster that listens at an address; None if no node does."""
        return self._peers.get((host, port)) if isinstance(host, str) and isinstance(port, int) else None

    def apply(self, plan: FaultPlan) -> None:
        """Let these faults happen, and no others."""
        self._plan = plan
        self._tickets = {pair: tuple(map(FaultTickets, files)) for pair, files in plan.tickets.items()}
        for peer, out, back in tuple(self._pipes):
            self._set(peer, out, back)
        for waiting in tuple(self._dialling):
            if not waiting.done():
                waiting.set_result(None)

    async def dial(self, peer: int) -> None:
        """Wait as long as a handshake takes: for ever while a direction is cut."""
        here = self._node_id
        ways = ((here, peer), (peer, here))
        held = [tickets for way in ways for tickets in self._tickets.get(way, ())]
        for each in held:
            each.take()
        while self._plan.cuts.intersection(ways):
            healed = self._loop.create_future()
            self._dialling[healed] = None
            try:
                await healed
            finally:
                del self._dialling[healed]
        delays = self._plan.delays
        await asyncio.sleep(delays.get((here, peer), 0.0) + delays.get((peer, here), 0.0))

    def pipes(self, peer: int) -> tuple[Pipe, Pipe]:
        """Return the two directions of a new connection, to the peer and back; `forget` ends them."""
        out, back = Pipe(self._loop), Pipe(self._loop)
        self._pipes[peer, out, back] = None
        self._set(peer, out, back)
        return out, back

    def forget(self, peer: int, out: Pipe, back: Pipe) -> None:
        self._pipes.pop((peer, out, back), None)

    def _set(self, peer: int, out: Pipe, back: Pipe) -> None:
        for pipe, way in ((out, (self._node_id, peer)), (back, (peer, self._node_id))):
            pipe.change(
                is_cut=way in self._plan.cuts,
                delay_s=self._plan.delays.get(way, 0.0),
                tickets=self._tickets.get(way, ()),
            )


class FaultyTransport(asyncio.Transport):
    """The transport that a connection to a peer gets: its bytes go through a pipe."""

    _start_tls_compatible = True  # asyncio's `start_tls` asks for it

    def __init__(self, connection: FaultyProtocol, transport: asyncio.Transport, out: Pipe) -> None:
        super().__init__()
        self._connection = connection
        self._transport = transport
        self._out = out
        self._is_closing = False

    def __repr__(self) -> str:
        return f"<FaultyTransport {self._out!r} closing={self._is_closing}>"

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._is_closing:
            self._out.put(partial(self._transport.write, bytes(data)))

    def close(self) -> None:
        self._end(self._transport.close)

    def abort(self) -> None:
        self._end(self._transport.abort)

    def _force_close(self, exc: Exception | None) -> None:
        """Abort after a failure: asyncio's TLS calls it, and its own protocol learns the failure."""
        self._end(self._transport.abort, exc)

    def _end(self, end: Callable[[], None], exc: Exception | None = None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._connection.closed_here(exc)
            self._out.put(end)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._connection.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._connection.protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()


class FaultyProtocol(asyncio.Protocol):
    """The protocol of the real connection to a peer: received bytes go through a pipe to the protocol of the node."""

    def __init__(
        self, faults: LinkFaults, peer: int, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol
    ) -> None:
        self.protocol = protocol
        self.transport: FaultyTransport
        self._faults = faults
        self._peer = peer
        self._out, self._back = faults.pipes(peer)
        self._loop = loop
        self._is_closed_here = False
        self._is_over = False

    def __repr__(self) -> str:
        return f"<FaultyProtocol to={self._peer} {self._back!r}>"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = FaultyTransport(self, cast("asyncio.Transport", transport), self._out)
        self.protocol.connection_made(self.transport)

    def data_received(self, data: bytes) -> None:
        self._back.put(partial(self._feed, data))

    def eof_received(self) -> bool:
        # The peer sends nothing more. Return False, so that asyncio closes the whole connection.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        if self._is_closed_here:
            self._forget()
        else:
            # The peer's earlier bytes come first, and both wait while the way is cut.
            self._back.put(partial(self._lost, exc))

    def _lost(self, exc: Exception | None) -> None:
        self._forget()
        self.protocol.connection_lost(exc)

    def closed_here(self, exc: Exception | None = None) -> None:
        """Call `connection_lost` and nothing else from now on, as a closed transport does."""
        self._is_closed_here = True
        self._back.close()
        self._loop.call_soon(self.protocol.connection_lost, exc)
        if self._is_over:
            self._forget()

    def _forget(self) -> None:
        self._out.close()
        self._faults.forget(self._peer, self._out, self._back)

    def _feed(self, data: bytes) -> None:
        if self._is_closed_here:
            return
        protocol = self.protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            left = memoryview(data)
            while left and not self._is_closed_here:
                buffer = memoryview(protocol.get_buffer(len(left)))
                taken = min(len(buffer), len(left))
                buffer[:taken] = left[:taken]
                protocol.buffer_updated(taken)
                left = left[taken:]
        else:
            cast("asyncio.Protocol", protocol).data_received(data)


class FaultyLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, whose connections to the cluster's other nodes have faults once `faults` is set."""

    faults: LinkFaults | None = None

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        server_hostname: str | None = None,
        **options: Any,
    ) -> tuple[Any, Any]:
        peer = None if self.faults is None else self.faults.peer(host, port)
        if self.faults is None or peer is None:
            return await super().create_connection(
                protocol_factory, host, port, ssl=ssl, server_hostname=server_hostname, **options
            )
        await self.faults.dial(peer)
        make = partial(FaultyProtocol, self.faults, peer, self)
        inner = protocol_factory if ssl is None else asyncio.Protocol
        _, connection = await super().create_connection(lambda: make(inner()), host, port, **options)
        if ssl is None:
            return connection.transport, connection.protocol
        protocol = protocol_factory()
        encrypted = await self.start_tls(connection.transport, protocol, ssl, server_hostname=server_hostname or host)
        protocol.connection_made(encrypted)
        return encrypted, protocol
