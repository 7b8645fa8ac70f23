"""A connection without sockets: what holds requests back, and what each end releases."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.api.accounting import Accounting
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.held_order import release_order
from barnabas.net.connection import Connection
from barnabas.net.listener import Listener
from barnabas.net.request_memory import RequestMemory
from barnabas.protocol.framing import READ_BYTES
from barnabas.steps import start
from barnabas.turns import TURN, spend
from tests.net.scripted_dispatcher import FETCH, METADATA, PRODUCE, ScriptedDispatcher, request, response


class Transport:
    """A transport that keeps what is written, and never reports that it has closed."""

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_closed = False

    def get_extra_info(self, name: str) -> Any:
        return None if name == "socket" else ("127.0.0.1", 1)

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        assert self.is_reading, "paused twice"
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading, "resumed twice"
        self.is_reading = True

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Peer:
    """A connection with a scripted dispatcher, over a fake transport."""

    def __init__(self, loop: asyncio.AbstractEventLoop, memory: RequestMemory | None = None) -> None:
        self.waits: dict[int, asyncio.Future[Any]] = {}
        self.on_request: Callable[[RequestContext], None] = lambda context: None
        self.loop = loop
        self.listener = Listener(loop, max_idle_ms=-1, memory=memory)
        self.dispatcher = ScriptedDispatcher(self._answer)
        self.transport = Transport()
        self.connection = Connection(self.listener)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def _answer(self, context: RequestContext, body: bytes) -> Any:
        self.on_request(context)
        if body != b"wait":
            return [response(context.correlation_id)]
        future = self.waits[context.correlation_id] = self.loop.create_future()
        return future

    def serve(self) -> None:
        self.listener.serve(self.dispatcher)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        assert self.transport.is_reading, "a paused transport delivers nothing"
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def turn(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0))

    @property
    def answered(self) -> list[int]:
        return [struct.unpack_from(">i", self.transport.written, at + 4)[0] for at in range(0, self._written, 8)]

    @property
    def _written(self) -> int:
        return len(self.transport.written)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def peer(loop: asyncio.AbstractEventLoop) -> Iterator[Peer]:
    peer = Peer(loop)
    peer.serve()
    yield peer
    peer.connection.connection_lost(None)


def throttle(milliseconds: int) -> Callable[[RequestContext], None]:
    def on_request(context: RequestContext) -> None:
        context.accounting = Accounting(0, 0)
        context.accounting.throttle_ms = milliseconds

    return on_request


def test_bytes_that_come_before_the_broker_is_ready_are_not_read_on(loop: asyncio.AbstractEventLoop) -> None:
    peer = Peer(loop)
    peer.send(request(METADATA, 1)[:3])
    assert not peer.transport.is_reading
    peer.serve()
    assert peer.transport.is_reading
    peer.send(request(METADATA, 1)[3:])
    assert peer.answered == [1]


def test_a_connection_without_bytes_holds_no_buffer(peer: Peer) -> None:
    peer.send(request(METADATA, 1))
    assert peer.connection._frames is None
    peer.send(request(METADATA, 2)[:5])
    assert peer.connection._frames is not None


def test_reading_pauses_while_a_whole_request_waits(peer: Peer) -> None:
    peer.send(request(FETCH, 1, b"wait") + request(METADATA, 2)[:5])
    assert peer.transport.is_reading, "the request is not whole"
    peer.send(request(METADATA, 2)[5:])
    assert not peer.transport.is_reading
    peer.waits[1].set_result([response(1)])
    peer.turn()
    assert peer.answered == [1, 2]
    assert peer.transport.is_reading
    assert repr(peer.connection).endswith("waiting=0 holds=none>")


@pytest.mark.parametrize("released", [False, True])
def test_reading_pauses_while_a_produce_holds_the_order(peer: Peer, *, released: bool) -> None:
    """Its client may have closed the connection: what it sent is appended all the same, before that is read."""

    def hold(context: RequestContext) -> None:
        context.holds_order = context.api_key == PRODUCE

    peer.on_request = hold
    peer.send(request(PRODUCE, 1, b"wait") + (b"" if released else request(METADATA, 2)[:5]))
    assert not peer.transport.is_reading
    peer.connection.sweep()
    assert (peer.connection._frames is None) == released
    peer.waits[1].set_result(None)
    peer.turn()
    assert peer.transport.is_reading
    peer.send(request(METADATA, 2)[0 if released else 5 :])
    assert peer.answered == [2]


def test_a_produce_that_holds_the_order_no_longer_lets_the_next_one_in_before_its_response(peer: Peer) -> None:
    def hold(context: RequestContext) -> None:
        context.holds_order = context.correlation_id == 1

    peer.on_request = hold
    peer.send(request(PRODUCE, 1, b"wait") + request(PRODUCE, 2, b"wait") + request(METADATA, 3))
    assert peer.dispatcher.handled == [1]
    release_order(peer.dispatcher.contexts[0])
    assert peer.dispatcher.handled == [1], "what the handler does next comes first"
    peer.turn()
    assert peer.dispatcher.handled == [1, 2]
    assert peer.answered == []
    peer.waits[2].set_result([response(2)])
    peer.waits[1].set_result([response(1)])
    peer.turn()
    assert peer.answered == [1, 2, 3]
    assert peer.transport.is_reading


def test_an_order_that_is_released_when_the_connection_has_closed_lets_nothing_in(peer: Peer) -> None:
    def hold(context: RequestContext) -> None:
        context.holds_order = True

    peer.on_request = hold
    peer.send(request(PRODUCE, 1, b"wait") + request(PRODUCE, 2, b"wait"))
    peer.connection.close()
    release_order(peer.dispatcher.contexts[0])
    peer.turn()
    assert peer.dispatcher.handled == [1]


def cost(of_a_request: int) -> Callable[[RequestContext], None]:
    def on_request(_: RequestContext) -> None:
        spend(of_a_request)

    return on_request


def take_place(loop: asyncio.AbstractEventLoop) -> None:
    """Let the turn of the first in the queue begin, and let it go on."""
    for _ in range(2):
        loop.call_soon(loop.stop)
        loop.run_forever()


def test_requests_that_use_up_a_turn_wait_for_the_next(peer: Peer) -> None:
    peer.on_request = cost(TURN // 3 + 1)
    peer.send(b"".join(request(METADATA, number) for number in range(1, 8)))
    assert peer.answered == [1, 2, 3]
    assert not peer.transport.is_reading
    assert repr(peer.connection).endswith("holds=yielding>")
    for answered in ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7]):
        take_place(peer.loop)
        assert peer.answered == answered
    assert peer.transport.is_reading
    assert peer.connection._frames is None


def test_connections_that_use_up_a_turn_go_on_one_after_the_other(loop: asyncio.AbstractEventLoop) -> None:
    peers = [Peer(loop) for _ in range(3)]
    for peer in peers:
        peer.serve()
        peer.on_request = cost(TURN + 1)
        peer.send(request(METADATA, 1) + request(METADATA, 2))
    handled = [[len(peer.answered) for peer in peers]]
    for _ in range(4):
        loop.call_soon(loop.stop)
        loop.run_forever()
        handled.append([len(peer.answered) for peer in peers])
    assert handled == [[1, 1, 1], [1, 1, 1], [2, 1, 1], [2, 2, 1], [2, 2, 2]]


def test_a_request_of_another_connection_is_handled_while_one_waits_for_its_turn(peer: Peer) -> None:
    other = Peer(peer.loop)
    other.serve()
    peer.on_request = cost(TURN + 1)
    peer.send(request(METADATA, 1) + request(METADATA, 2))
    other.send(request(METADATA, 1))
    assert (peer.answered, other.answered) == ([1], [1])


def test_a_connection_that_closes_between_two_turns_handles_no_more(peer: Peer) -> None:
    peer.on_request = cost(TURN + 1)
    peer.send(request(METADATA, 1) + request(METADATA, 2))
    peer.connection.close()
    take_place(peer.loop)
    take_place(peer.loop)
    assert peer.dispatcher.handled == peer.answered == [1]


def test_a_full_transport_holds_requests_back(peer: Peer) -> None:
    peer.connection.pause_writing()
    peer.send(request(METADATA, 1))
    assert (peer.answered, peer.transport.is_reading) == ([], False)
    assert repr(peer.connection).endswith("holds=unsent>")
    peer.connection.resume_writing()
    assert (peer.answered, peer.transport.is_reading) == ([1], True)


@pytest.mark.parametrize("rests_ms", [(1000, 5000), (5000, 1000)])
def test_the_longest_of_two_rests_counts(peer: Peer, rests_ms: tuple[int, int]) -> None:
    began = peer.loop.time()
    for correlation_id, rest_ms in enumerate(rests_ms):
        peer.on_request = throttle(rest_ms)
        peer.send(request(PRODUCE, correlation_id, b"wait"))
    for wait in peer.waits.values():
        wait.set_result([response(0)])
    peer.turn()
    assert len(peer.answered) == 2
    assert peer.connection._rest is not None
    assert peer.connection._rest.when() - began >= 5
    peer.on_request = lambda context: None
    peer.send(request(METADATA, 2))
    assert not peer.transport.is_reading
    peer.connection._rested()
    assert peer.answered[2:] == [2]


@pytest.mark.parametrize("end", ["close", "abort", "eof", "lost"])
def test_every_end_cancels_requests_and_the_rest_at_once(loop: asyncio.AbstractEventLoop, end: str) -> None:
    """At once: a peer that does not read may keep the transport from ever reporting the end."""
    peer = Peer(loop)
    peer.serve()
    peer.on_request = throttle(60_000)
    peer.send(request(PRODUCE, 1, b"wait") + request(PRODUCE, 2, b"wait"))
    peer.waits[1].set_result([response(1)])
    peer.turn()
    rest = peer.connection._rest
    assert rest is not None
    ends: dict[str, Callable[[], object]] = {
        "close": peer.connection.close,
        "abort": lambda: peer.connection.abort("for a test"),
        "eof": peer.connection.eof_received,
        "lost": lambda: peer.connection.connection_lost(None),
    }
    ends[end]()
    assert peer.waits[2].cancelled()
    assert rest.cancelled()
    assert not peer.connection.is_muted
    peer.turn()
    assert peer.answered == [1]


def test_a_request_that_closes_its_own_connection_and_waits_is_cancelled_at_once(peer: Peer) -> None:
    peer.on_request = lambda context: peer.connection.close()
    peer.send(request(FETCH, 1, b"wait") + request(METADATA, 2))
    assert peer.waits[1].cancelled()
    assert peer.dispatcher.handled == [1]


def test_a_response_that_fails_while_the_connection_closes_is_not_reported(peer: Peer) -> None:
    reported: list[Any] = []
    peer.loop.set_exception_handler(lambda _, report: reported.append(report))
    peer.send(request(FETCH, 1, b"wait"))
    peer.waits.pop(1).set_exception(ZeroDivisionError())
    peer.connection.close()
    peer.turn()
    gc.collect()
    assert reported == []
    assert peer.answered == []


def test_a_handler_that_fails_when_it_is_cancelled_is_not_reported(peer: Peer) -> None:
    reported: list[Any] = []
    peer.loop.set_exception_handler(lambda _, report: reported.append(report))

    async def handle(wait: asyncio.Future[None]) -> None:
        try:
            await wait
        except asyncio.CancelledError:
            raise ZeroDivisionError from None

    peer.dispatcher._answer = lambda context, body: start(handle(peer.loop.create_future()), peer.loop)
    peer.send(request(FETCH, 1))
    peer.connection.close()
    peer.turn()
    peer.turn()
    gc.collect()
    assert reported == []


def test_a_connection_that_waits_for_memory_leaves_the_queue_with_its_end(loop: asyncio.AbstractEventLoop) -> None:
    memory = RequestMemory(1, loop)
    first, peer = Peer(loop, memory), Peer(loop, memory)
    first.serve()
    first.send(request(METADATA, 1, bytes(100_000))[:1000])
    assert first.transport.is_reading, "one request may be larger than the memory"
    peer.serve()
    peer.send(request(METADATA, 1, bytes(100_000))[:1000])
    assert not peer.transport.is_reading
    assert repr(memory).endswith("waiting=1>")
    peer.connection.connection_lost(None)
    assert repr(memory).endswith("waiting=0>")


def test_a_request_that_waits_counts_as_memory_until_it_is_handled(loop: asyncio.AbstractEventLoop) -> None:
    memory = RequestMemory(1 << 20, loop)
    peer = Peer(loop, memory)
    peer.serve()
    peer.send(request(FETCH, 1, b"wait") + request(METADATA, 2))
    assert memory.used == READ_BYTES
    peer.waits[1].set_result([response(1)])
    peer.turn()
    assert peer.answered == [1, 2]
    assert memory.used == 0


@pytest.mark.parametrize("error", [asyncio.CancelledError(), ZeroDivisionError()])
def test_a_handler_that_raises_what_no_response_can_say_closes_the_connection(peer: Peer, error: BaseException) -> None:
    def fail(context: RequestContext) -> None:
        raise error

    peer.on_request = fail
    if isinstance(error, asyncio.CancelledError):
        peer.send(request(METADATA, 1))
    else:
        with pytest.raises(ZeroDivisionError):
            peer.send(request(METADATA, 1))
    assert peer.transport.is_closed
