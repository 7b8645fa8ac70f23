"""Silence and delay between nodes: pieces in order, connections that neither open nor close, both directions."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.channel import Channel
from barnabas.client.errors import BrokerNotAvailable
from barnabas.embedded.fault_plan import NO_FAULTS, FaultPlan
from barnabas.embedded.link_faults import FaultyLoop, LinkFaults, Pipe
from barnabas.protocol.messages import MetadataRequest
from barnabas.security.tls_settings import client_context, server_context
from tests.security import certificates

OUT, BACK = (1, 2), (2, 1)


class Clock:
    """A loop's clock and timers, moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Clock.Timer] = []

    class Timer:
        def __init__(self, when: float, call: Callable[[], None]) -> None:
            self.when, self.call, self.is_cancelled = when, call, False

        def cancel(self) -> None:
            self.is_cancelled = True

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Clock.Timer(when, call))
        return self.timers[-1]

    def move(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer.when <= self.now and not timer.is_cancelled]
        self.timers = [timer for timer in self.timers if timer not in due]
        for timer in due:
            timer.call()


def piped(done: list[str]) -> tuple[Clock, Pipe, Callable[[str], None]]:
    clock = Clock()
    pipe = Pipe(clock)  # type: ignore[arg-type]
    return clock, pipe, lambda text: pipe.put(lambda: done.append(text))


def test_without_a_fault_work_is_done_at_once() -> None:
    done: list[str] = []
    _, _, put = piped(done)
    put("a")
    assert done == ["a"]


def test_a_cut_holds_everything_back_until_it_is_healed() -> None:
    done: list[str] = []
    clock, pipe, put = piped(done)
    pipe.change(is_cut=True, delay_s=0)
    put("a")
    put("b")
    clock.move(1000)
    assert done == []
    pipe.change(is_cut=False, delay_s=0)
    put("c")
    assert done == ["a", "b", "c"]


def test_a_delay_keeps_the_order_also_when_it_ends() -> None:
    done: list[str] = []
    clock, pipe, put = piped(done)
    pipe.change(is_cut=False, delay_s=2)
    put("a")
    clock.move(1)
    put("b")
    assert done == []
    clock.move(1)
    assert done == ["a"]
    pipe.change(is_cut=False, delay_s=0)
    put("c")
    assert done == ["a"]
    clock.move(1)
    assert done == ["a", "b", "c"]


def test_what_is_late_waits_for_a_cut_too() -> None:
    done: list[str] = []
    clock, pipe, put = piped(done)
    pipe.change(is_cut=False, delay_s=1)
    put("a")
    pipe.change(is_cut=True, delay_s=1)
    clock.move(5)
    assert done == []
    pipe.change(is_cut=False, delay_s=1)
    assert done == ["a"]


def test_a_closed_pipe_forgets() -> None:
    done: list[str] = []
    clock, pipe, put = piped(done)
    pipe.change(is_cut=False, delay_s=1)
    put("a")
    pipe.close()
    clock.move(5)
    assert done == []


class Peer(asyncio.Protocol):
    """Node 2: answers each word with the same word."""

    def __init__(self, received: asyncio.Queue[bytes | None]) -> None:
        self.received = received
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received.put_nowait(data)
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.received.put_nowait(None)


class Node(asyncio.BufferedProtocol):
    """The connection of node 1, with a buffer that is too small for a word."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.transport: asyncio.Transport
        self._buffer = bytearray(3)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received.put_nowait(bytes(self._buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.received.put_nowait(None)


class World:
    """Node 1 here, node 2 behind a socket, with TLS or without."""

    def __init__(self, loop: FaultyLoop, *, has_tls: bool = False) -> None:
        self.loop = loop
        self._client: ssl.SSLContext | None = None
        self._server_side: ssl.SSLContext | None = None
        if has_tls:
            trust = certificates.authority().settings()
            self._client = client_context(trust)
            self._server_side = server_context(certificates.node().settings() | trust)
        self.at_peer: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.peers: list[Peer] = []
        self.faults: LinkFaults
        self.port = 0

    async def __aenter__(self) -> World:
        def accept() -> Peer:
            self.peers.append(Peer(self.at_peer))
            return self.peers[-1]

        self._server = await self.loop.create_server(accept, "127.0.0.1", 0, ssl=self._server_side)
        self.port = self._server.sockets[0].getsockname()[1]
        self.faults = self.loop.faults = LinkFaults(1, {("127.0.0.1", self.port): 2}, self.loop)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for peer in self.peers:
            if hasattr(peer, "transport"):  # A handshake that failed has made none.
                peer.transport.abort()

    async def dial(self) -> Node:
        _, node = await self.loop.create_connection(Node, "127.0.0.1", self.port, ssl=self._client)
        assert isinstance(node, Node)
        return node

    def cut(self, *ways: tuple[int, int]) -> None:
        self.faults.apply(FaultPlan(cuts=frozenset(ways)))

    def heal(self) -> None:
        self.faults.apply(NO_FAULTS)

    async def turns(self) -> None:
        """Let everything arrive that is on its way: another connection's round trip comes after it."""
        server = await self.loop.create_server(lambda: Peer(asyncio.Queue()), "127.0.0.1", 0)
        answered: asyncio.Future[None] = self.loop.create_future()

        class Witness(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                transport.write(b"?")

            def data_received(self, data: bytes) -> None:
                answered.set_result(None)

        transport, _ = await self.loop.create_connection(Witness, *server.sockets[0].getsockname())
        await answered
        transport.abort()
        server.close()


def play(scene: Callable[[World], Coroutine[Any, Any, None]], *, has_tls: bool = False) -> None:
    loop = FaultyLoop()

    async def run() -> None:
        async with World(loop, has_tls=has_tls) as world:
            await asyncio.wait_for(scene(world), 30)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


async def word(node: Node) -> bytes:
    found = b""
    while len(found) < 5:
        part = await node.received.get()
        assert part is not None
        found += part
    return found


def test_words_arrive_in_a_buffer_of_any_size() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        node.transport.write(b"hello")
        assert await word(node) == b"hello"
        assert await world.at_peer.get() == b"hello"

    play(scene)


def test_a_request_does_not_get_through() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        world.cut(OUT)
        node.transport.write(b"hello")
        await world.turns()
        assert world.at_peer.empty()
        world.heal()
        assert await word(node) == b"hello"

    play(scene)


def test_a_response_does_not_get_back() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        world.cut(BACK)
        node.transport.write(b"hello")
        assert await world.at_peer.get() == b"hello"
        await world.turns()
        assert node.received.empty()
        world.heal()
        assert await word(node) == b"hello"

    play(scene)


@pytest.mark.parametrize("way", [OUT, BACK])
def test_no_connection_is_made_or_refused(way: tuple[int, int]) -> None:
    async def scene(world: World) -> None:
        world.cut(way)
        dialling = world.loop.create_task(world.dial())
        await world.turns()
        assert not dialling.done()
        world.cut(OUT, BACK)
        await world.turns()
        assert not dialling.done()
        world.heal()
        node = await dialling
        node.transport.write(b"hello")
        assert await word(node) == b"hello"

    play(scene)


def test_the_peer_does_not_learn_of_the_end() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        world.cut(OUT)
        node.transport.abort()
        assert await node.received.get() is None
        assert node.transport.is_closing()
        node.transport.write(b"more!")
        await world.turns()
        assert world.at_peer.empty()
        world.heal()
        assert await world.at_peer.get() is None

    play(scene)


def test_the_node_does_not_learn_of_the_end() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        node.transport.write(b"hello")
        assert await word(node) == b"hello"
        world.cut(BACK)
        world.peers[0].transport.write(b"later")
        world.peers[0].transport.close()
        await world.turns()
        assert node.received.empty()
        world.heal()
        assert await word(node) == b"later"
        assert await node.received.get() is None

    play(scene)


def test_connections_that_are_over_are_forgotten() -> None:
    async def scene(world: World) -> None:
        first, second = await world.dial(), await world.dial()
        assert repr(world.faults) == "<LinkFaults of=1 connections=2 dialling=0>"
        first.transport.close()
        assert await first.received.get() is None
        while len(world.peers) < 2:
            await asyncio.sleep(0)
        world.cut(BACK)
        world.peers[1].transport.abort()
        await world.turns()
        second.transport.abort()
        assert await second.received.get() is None
        world.heal()
        await world.turns()
        assert repr(world.faults) == "<LinkFaults of=1 connections=0 dialling=0>"

    play(scene)


def test_other_addresses_are_not_touched() -> None:
    async def scene(world: World) -> None:
        world.faults = world.loop.faults = LinkFaults(1, {("127.0.0.1", 1): 2}, world.loop)
        world.cut(OUT, BACK)
        node = await world.dial()
        node.transport.write(b"hello")
        assert await word(node) == b"hello"

    play(scene)


def test_a_channel_of_the_cluster_ends_with_its_own_time_limit() -> None:
    async def scene(world: World) -> None:
        world.cut(OUT)
        channel = Channel(world.loop, "127.0.0.1", world.port, client_id="broker-1-fetcher", timeout_ms=20)
        with pytest.raises(BrokerNotAvailable, match="no answer within 20 ms"):
            await channel.request(MetadataRequest())

    play(scene)


def test_an_encrypted_connection_is_cut_and_healed() -> None:
    async def scene(world: World) -> None:
        node = await world.dial()
        node.transport.write(b"hello")
        assert await word(node) == b"hello"
        world.cut(OUT)
        node.transport.write(b"later")
        await world.turns()
        assert world.at_peer.qsize() == 1
        world.heal()
        assert await word(node) == b"later"
        world.cut(BACK)
        world.peers[0].transport.close()
        await world.turns()
        assert node.received.empty()
        world.heal()
        assert await node.received.get() is None

    play(scene, has_tls=True)


def test_a_cut_holds_a_handshake() -> None:
    async def scene(world: World) -> None:
        world.cut(OUT)
        dialling = world.loop.create_task(world.dial())
        await world.turns()
        assert world.peers == []
        world.heal()
        # The connection is open, and the server's part of the handshake is under way.
        while not world.faults.connections:
            await asyncio.sleep(0)
        world.cut(BACK)
        await world.turns()
        assert not dialling.done()
        world.heal()
        node = await dialling
        node.transport.write(b"hello")
        assert await word(node) == b"hello"

    play(scene, has_tls=True)


def test_a_server_that_is_not_trusted_is_a_failure_of_the_dial() -> None:
    async def scene(world: World) -> None:
        stranger = client_context(certificates.foreign_authority().settings())
        with pytest.raises(ssl.SSLCertVerificationError):
            await world.loop.create_connection(Node, "127.0.0.1", world.port, ssl=stranger)
        await world.turns()
        assert world.faults.connections == 0

    play(scene, has_tls=True)
