"""Large responses through a transport that encrypts: bytes for each turn of the loop, bytes in memory, order, and the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.net.piece_sender import PIECE, PIECE_COST, PieceSender
from barnabas.net.sendfile import WRITE_LIMIT
from barnabas.net.tls_transport import TlsTransport
from barnabas.turns import TURN, new_budget
from tests.net.listening import connect, next_response, on_both_loops, until
from tests.net.scripted_dispatcher import FETCH, BytesSlice, FileSlice, ScriptedDispatcher, request, response
from tests.net.test_secured_connection import client, listening, tls

A_TURN = TURN // PIECE_COST * PIECE
"""The most that a turn may take."""
LARGE = os.urandom(1 << 16) * 320
"""20 MiB."""


class Transport:
    """A transport over a socket that takes everything, or nothing until `drain`."""

    def __init__(self, takes_everything: bool = True) -> None:
        self.written: list[bytes] = []
        self.takes_everything = takes_everything
        self.waiting = 0
        self.most = 0
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))
        if not self.takes_everything:
            self.waiting += len(data)
            self.most = max(self.most, self.waiting)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.is_closed


class Loop:
    """Calls what is due in the next turn."""

    def __init__(self) -> None:
        self.soon: list[Callable[..., Any]] = []

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> None:
        self.soon.append(lambda: callback(*args))

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def get_debug(self) -> bool:
        return False

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Sending:
    def __init__(self, takes_everything: bool = True, loop: Loop | None = None) -> None:
        new_budget()
        self.transport, self.loop = Transport(takes_everything), loop or Loop()
        self.is_done = False
        self.sender = PieceSender(self.transport, self.loop, self.go_on)  # type: ignore[arg-type]

    def send(self, *parts: Any) -> None:
        self.is_done = self.sender.send(list(parts))

    def go_on(self) -> None:
        self.is_done = self.sender.proceed()

    def turns(self) -> list[int]:
        """Play turns to the end; return the bytes that each wrote, the turn before them too."""
        counts: list[int] = []
        while True:
            counts.append(sum(map(len, self.transport.written)) - sum(counts))
            if not self.loop.soon:
                return counts
            self.loop.turn()


def test_a_turn_takes_a_bounded_piece_of_a_response() -> None:
    sending = Sending()
    sending.send(bytearray(b"head"), BytesSlice(LARGE))
    counts = sending.turns()
    assert sending.is_done
    assert b"".join(sending.transport.written) == b"head" + LARGE
    assert max(counts) <= A_TURN
    assert len([count for count in counts if count]) >= len(LARGE) // A_TURN
    assert max(map(len, sending.transport.written)) == PIECE


def test_connections_share_the_turn() -> None:
    """Ten at once do not take ten times as long a turn."""
    loop = Loop()
    all_of_them = [Sending(loop=loop) for _ in range(10)]
    for each in all_of_them:
        each.send(BytesSlice(LARGE[: 4 << 20]))
    sent = 0
    while loop.soon:
        before, sent = sent, sum(len(data) for each in all_of_them for data in each.transport.written)
        assert sent - before <= A_TURN * 2  # The queue's callback renews the budget, and one connection goes on.
        loop.turn()
    assert all(each.is_done for each in all_of_them)


def test_a_socket_that_takes_nothing_bounds_the_memory() -> None:
    sending = Sending(takes_everything=False)
    sending.send(bytearray(b"head"), BytesSlice(LARGE))
    for _ in range(200):
        sending.turns()
        assert sending.transport.most <= WRITE_LIMIT + PIECE
        sending.transport.waiting = 0
        if sending.is_done:
            break
        sending.go_on()
    assert sending.is_done
    assert b"".join(sending.transport.written) == b"head" + LARGE


def test_responses_keep_their_order() -> None:
    sending = Sending()
    sending.send(bytearray(LARGE), BytesSlice(b"second "))
    assert not sending.is_done
    sending.send(bytearray(b"third"))
    assert not sending.is_done
    assert sending.sender.unsent_bytes < len(LARGE) + 5
    sending.turns()
    assert b"".join(sending.transport.written) == LARGE + b"second third"
    assert sending.sender.unsent_bytes == 0


def test_a_file_is_read_piece_by_piece(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before" + LARGE)
    fd = os.open(tmp_path / "log", os.O_RDONLY)
    try:
        sending = Sending()
        sending.send(bytearray(), FileSlice(fd, 6, len(LARGE)))
        sending.turns()
        assert b"".join(sending.transport.written) == LARGE
        too_long = Sending()
        too_long.send(FileSlice(fd, 6, len(LARGE) + 1))
        with pytest.raises(OSError, match="the log ends within a slice"):
            too_long.turns()
    finally:
        os.close(fd)


def test_nothing_is_sent_after_the_end() -> None:
    sending = Sending()
    sending.send(BytesSlice(LARGE))
    sent = len(sending.transport.written)
    sending.sender.close()
    sending.turns()
    assert len(sending.transport.written) == sent
    closing = Sending()
    closing.transport.is_closed = True
    closing.send(BytesSlice(LARGE))
    assert closing.is_done
    assert closing.transport.written == []


def test_repr() -> None:
    sending = Sending()
    sending.send(BytesSlice(LARGE))
    assert repr(sending.sender) == "<PieceSender parts=1>"


class Counted:
    """Counts the bytes that connections encrypt in each turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns = [0]
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        write = TlsTransport.write

        def counting(transport: TlsTransport, data: Any) -> None:
            self.turns[-1] += len(data)
            write(transport, data)

        monkeypatch.setattr(TlsTransport, "write", counting)
        self._tick()

    def _tick(self) -> None:
        self.turns.append(0)
        if not self._is_over:
            self._loop.call_soon(self._tick)

    def end(self) -> None:
        self._is_over = True


@pytest.mark.parametrize("kind", ["one part", "slices"])
def test_over_tls_every_turn_is_bounded(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LARGE)

    @on_both_loops
    async def story() -> None:
        new_budget()
        counted = Counted(monkeypatch)
        fd = os.open(tmp_path / "log", os.O_RDONLY)

        def answer(context: Any, body: bytes) -> Any:
            whole = response(context.correlation_id, LARGE)
            return [whole] if kind == "one part" else [whole[:8], FileSlice(fd, 0, len(LARGE))]

        async with listening(tls(), dispatcher=ScriptedDispatcher(answer)) as listener:
            reader, writer = await connect(listener, ssl=client())
            writer.write(request(FETCH, 1) + request(FETCH, 2))
            assert await next_response(reader) == (1, LARGE)
            assert await next_response(reader) == (2, LARGE)
            writer.close()
        os.close(fd)
        assert sum(counted.turns) >= 2 * len(LARGE)
        # A turn may use the rest of one budget, and the next one.
        assert max(counted.turns) <= 2 * A_TURN
        counted.end()
        monkeypatch.undo()

    story()


@on_both_loops
async def test_a_client_that_reads_nothing_costs_a_bounded_memory() -> None:
    def answer(context: Any, body: bytes) -> Any:
        return [response(context.correlation_id, LARGE)[:8], BytesSlice(LARGE)]

    async with listening(tls(), dispatcher=ScriptedDispatcher(answer)) as listener:
        reader, writer = await connect(listener, ssl=client(), limit=1024)
        transport: Any = writer.transport
        transport.pause_reading()
        writer.write(request(FETCH, 1))
        (connection,) = listener.connections
        await until(lambda: connection.unsent_bytes > WRITE_LIMIT)
        for _ in range(200):
            await asyncio.sleep(0)
            assert WRITE_LIMIT < connection.unsent_bytes <= WRITE_LIMIT + 2 * PIECE
        transport.resume_reading()
        assert await next_response(reader) == (1, LARGE)
        writer.close()
