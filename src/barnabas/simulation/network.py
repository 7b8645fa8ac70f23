"""The network of a simulated world: addresses, connections, delays and cuts.

Every node has a host of its own, from which its connections come. A way is a pair (source host, target host), and each can be cut or
slowed down by itself. A way may also name the port of a service: it then has only the connections to that service, in the direction from
source to target, whichever of the two serves. So replication can be cut while the quorum goes on.

- A cut holds the bytes that travel in its direction until the test heals it, because TCP sends unacknowledged bytes again. The
  network reports a cut to neither side.
- A connection opens only if both ways are open. It is tried again after 1, 2, 4 … seconds, and given up after two minutes.
- A host whose power is off is cut off from all, and forgets its connections. One whose process has died refuses connections.

All chance comes from the seed.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.timeline import Timeline
from barnabas.simulation.transport import MemoryTransport
from barnabas.simulation.world_loop import WorldLoop

Way = tuple[str, str, int | None]
"""From a host to another: one service's connections by its port, or all of them."""
FIRST_FREE_PORT = 20_000
MAX_DELAY = 0.02
CONNECT_SECONDS = 127.0
"""How long Linux tries to connect to a host that does not answer."""


class MemorySocket:
    """The part of a listening socket that the broker reads."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address


class MemoryServer:
    """A listener, as `create_server` returns it."""

    def __init__(self, network: Network, loop: NodeLoop, factory: Callable[[], Any], address: tuple[str, int]) -> None:
        self._network, self._address = network, address
        self.loop, self.factory = loop, factory
        self.sockets = [MemorySocket(address)]

    def close(self) -> None:
        if self._network.listeners.get(self._address) is self:
            del self._network.listeners[self._address]
        self.sockets = []

    def accept(self, transport: MemoryTransport) -> None:
        transport.begin(self.factory())


class Network:
    """All listeners and connections of one world."""

    def __init__(self, loop: WorldLoop, rng: random.Random, timeline: Timeline) -> None:
        self.loop, self.timeline = loop, timeline
        self.listeners: dict[tuple[str, int], MemoryServer] = {}
        self._rng = rng
        self._ports = FIRST_FREE_PORT
        self._open: dict[MemoryTransport, None] = {}
        self._held: dict[MemoryTransport, None] = {}
        self._cut: set[Way] = set()
        self._slow: dict[Way, float] = {}
        self._off: set[str] = set()
        self._names: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<Network listeners={len(self.listeners)} connections={len(self._open) // 2} cut={sorted(self._cut)}>"

    def name(self, host: str, name: str) -> None:
        """Name the node that has an address, for the timeline."""
        self._names[host] = name

    def _note(self, what: str, *hosts: str, port: int | None = None) -> None:
        line = what.format(*(self._names.get(host, host) for host in hosts))
        self.timeline.note("network", line if port is None else f"port {port}: {line}")

    # The weather

    def delay(self, source: str, target: str, port: int) -> float:
        """Return the seconds that a segment of a service's connection travels."""
        slower = self._slow.get((source, target, None), 0.0) + self._slow.get((source, target, port), 0.0)
        return self._rng.random() * MAX_DELAY + slower

    def piece(self, size: int) -> int:
        """Return how many bytes of a write travel together: mostly all of them."""
        return size if size < 2 or self._rng.random() < 0.8 else self._rng.randrange(1, size)

    def is_open(self, source: str, target: str, port: int) -> bool:
        is_cut = (source, target, None) in self._cut or (source, target, port) in self._cut
        return not is_cut and source not in self._off and target not in self._off

    def slow_down(self, source: str, target: str, seconds: float, port: int | None = None) -> None:
        """Let everything from one host to the other travel so much longer; 0 ends it."""
        self._note(f"{{}} to {{}} takes {seconds:g} s more", source, target, port=port)
        self._slow[source, target, port] = seconds

    def cut(self, source: str, target: str, port: int | None = None) -> None:
        """Cut one way; answers on the other still travel."""
        self._note("{} to {} is cut", source, target, port=port)
        self._cut.add((source, target, port))

    def heal(self, source: str, target: str, port: int | None = None) -> None:
        self._note("{} to {} heals", source, target, port=port)
        self._cut.discard((source, target, port))
        self._release()

    def part(self, half: Iterable[str], other_half: Iterable[str], port: int | None = None) -> None:
        """Cut both ways between every host of one half and every host of the other."""
        half, other_half = list(half), list(other_half)
        names = [", ".join(["{}"] * len(hosts)) for hosts in (half, other_half)]
        self._note(f"{names[0]} and {names[1]} are parted", *half, *other_half, port=port)
        for one in half:
            for other in other_half:
                self._cut |= {(one, other, port), (other, one, port)}

    def heal_all(self) -> None:
        self._note("all ways heal")
        self._cut.clear()
        self._slow.clear()
        self._release()

    def hold(self, transport: MemoryTransport) -> None:
        """Remember an end whose segments a cut holds."""
        self._held[transport] = None

    def _release(self) -> None:
        for transport in list(self._held):
            if self.is_open(transport.here[0], transport.there[0], transport.port):
                del self._held[transport]
                transport.release()

    def reset_one(self) -> None:
        """Break one connection, whichever the seed picks."""
        if self._open:
            transport = self._rng.choice(list(self._open))
            self._note("a connection of {} and {} is reset", transport.here[0], transport.there[0])
            transport.abort()

    # Nodes that end

    def process_ended(self, loop: NodeLoop) -> None:
        """The kernel of a dead process closes its listeners and connections."""
        for server in [server for server in self.listeners.values() if server.loop is loop]:
            server.close()
        for transport in self._of(loop):
            transport.process_ended(says_reset=self._rng.random() < 0.5)

    def power_lost(self, loop: NodeLoop, host: str) -> None:
        """Drop the listeners and connections of a host without a word to the other hosts."""
        self._off.add(host)
        for server in [server for server in self.listeners.values() if server.loop is loop]:
            server.close()
        for transport in self._of(loop):
            transport.lose_under_way()
            transport.vanish()

    def power_is_back(self, host: str) -> None:
        self._off.discard(host)
        self._release()

    def _of(self, loop: NodeLoop) -> list[MemoryTransport]:
        return [transport for transport in self._open if transport.loop is loop]

    # Called by loops

    def listen(self, loop: NodeLoop, factory: Callable[[], Any], host: str, port: int) -> MemoryServer:
        if not port:
            self._ports += 1
            port = self._ports
        if (host, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, "address already in use")
        server = self.listeners[host, port] = MemoryServer(self, loop, factory, (host, port))
        return server

    async def connect(self, loop: NodeLoop, factory: Callable[[], Any], host: str, port: int) -> Any:
        """Connect from the host of a loop's node.

        Raises:
            ConnectionRefusedError: nothing listens there.
            TimeoutError: the host does not answer.
        """
        await self._reach(loop, host, port)
        server = self.listeners.get((host, port))
        if server is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        self._ports += 1
        here, there = (loop.host, self._ports), (host, port)
        client = MemoryTransport(self, loop, here, there, port)
        accepted = MemoryTransport(self, server.loop, there, here, port)
        client.join(accepted)
        self._open |= {client: None, accepted: None}
        # The kernel has accepted the connection; the process learns of it when it runs.
        server.loop.call_soon(server.accept, accepted)
        protocol = factory()
        client.begin(protocol)
        return client, protocol

    async def _reach(self, loop: NodeLoop, host: str, port: int) -> None:
        gives_up = loop.time() + CONNECT_SECONDS
        again = 1.0
        while True:
            await asyncio.sleep(self.delay(loop.host, host, port))
            if self.is_open(loop.host, host, port) and self.is_open(host, loop.host, port):
                await asyncio.sleep(self.delay(host, loop.host, port))
                return
            if loop.time() + again > gives_up:
                raise TimeoutError(errno.ETIMEDOUT, "connection timed out")
            await asyncio.sleep(again)
            again *= 2

    def forget(self, transport: MemoryTransport) -> None:
        self._open.pop(transport, None)
