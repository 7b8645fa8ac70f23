"""Connections over real sockets, with scripted answers: order, back-pressure, slices, bad peers, the end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.api.accounting import Accounting
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.net import connection as connection_module
from barnabas.net.listener import Listener
from tests.net.listening import connect, echo, listening, next_response, on_both_loops, until
from tests.net.scripted_dispatcher import (
    FETCH,
    METADATA,
    PRODUCE,
    BytesSlice,
    FileSlice,
    ScriptedDispatcher,
    request,
    response,
)


@contextmanager
def log_file(folder: Path, data: bytes) -> Iterator[int]:
    """The descriptor of a log file."""
    (folder / "log").write_bytes(data)
    fd = os.open(folder / "log", os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


@on_both_loops
async def test_one_request_at_a_time_in_order() -> None:
    parked: dict[int, asyncio.Future[Any]] = {}

    def answer(context: RequestContext, body: bytes) -> Any:
        if context.api_key == FETCH:
            parked[context.correlation_id] = asyncio.get_running_loop().create_future()
            return parked[context.correlation_id]
        return echo(context, body)

    async with listening(answer) as (listener, dispatcher):
        reader, writer = await connect(listener)
        writer.write(request(FETCH, 1) + request(METADATA, 2) + request(FETCH, 3) + request(METADATA, 4))
        await until(lambda: 1 in parked)
        assert dispatcher.handled == [1]
        other_reader, other_writer = await connect(listener)
        other_writer.write(request(METADATA, 77))
        assert (await next_response(other_reader))[0] == 77
        parked[1].set_result([response(1)])
        assert [(await next_response(reader))[0] for _ in range(2)] == [1, 2]
        await until(lambda: 3 in parked)
        assert dispatcher.handled == [1, 77, 2, 3]
        parked[3].set_result([response(3)])
        assert [(await next_response(reader))[0] for _ in range(2)] == [3, 4]


@on_both_loops
async def test_pipelined_produce_is_handled_while_earlier_ones_wait_and_answered_in_order() -> None:
    parked: dict[int, asyncio.Future[Any]] = {}

    def answer(context: RequestContext, body: bytes) -> Any:
        if context.api_key == PRODUCE and body != b"now":
            parked[context.correlation_id] = asyncio.get_running_loop().create_future()
            return parked[context.correlation_id]
        return echo(context, body)

    async with listening(answer) as (listener, dispatcher):
        reader, writer = await connect(listener)
        writer.write(request(PRODUCE, 1) + request(PRODUCE, 2) + request(PRODUCE, 3, b"now") + request(METADATA, 4))
        await until(lambda: dispatcher.handled == [1, 2, 3])
        parked[2].set_result([response(2)])
        parked[1].set_result([response(1)])
        assert [(await next_response(reader))[0] for _ in range(4)] == [1, 2, 3, 4]


@on_both_loops
async def test_nothing_overtakes_a_produce_that_holds_the_order() -> None:
    parked: dict[int, asyncio.Future[Any]] = {}

    def answer(context: RequestContext, body: bytes) -> Any:
        if body == b"verify":
            context.holds_order = True
        if body:
            parked[context.correlation_id] = asyncio.get_running_loop().create_future()
            return parked[context.correlation_id]
        return echo(context, body)

    async with listening(answer) as (listener, dispatcher):
        reader, writer = await connect(listener)
        writer.write(request(PRODUCE, 1, b"wait") + request(PRODUCE, 2, b"verify") + request(PRODUCE, 3))
        await until(lambda: 2 in parked)
        assert dispatcher.handled == [1, 2]
        parked[1].set_result([response(1)])
        assert (await next_response(reader))[0] == 1
        assert dispatcher.handled == [1, 2], "still to be appended"
        parked[2].set_result([response(2)])
        assert [(await next_response(reader))[0] for _ in range(2)] == [2, 3]
        assert dispatcher.handled == [1, 2, 3]


@on_both_loops
async def test_a_produce_that_holds_the_order_outlives_its_client() -> None:
    parked: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        if context.api_key != PRODUCE:
            return echo(context, body)
        context.holds_order = True
        parked.append(asyncio.get_running_loop().create_future())
        return parked[-1]

    async with listening(answer) as (listener, _):
        reader, writer = await connect(listener)
        other, to_other = await connect(listener)
        writer.write(request(PRODUCE, 1))
        await until(lambda: bool(parked))
        writer.write_eof()
        for number in range(3):
            to_other.write(request(METADATA, number))
            await next_response(other)
        assert not parked[0].done()
        parked[0].set_result(None)
        assert not await reader.read()


@on_both_loops
async def test_a_failed_produce_without_acks_ends_the_connection_after_what_was_answered() -> None:
    def answer(context: RequestContext, body: bytes) -> Any:
        if body == b"bad":
            context.close_connection = True
            return None
        return echo(context, body)

    async with listening(answer) as (listener, dispatcher):
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1) + request(PRODUCE, 2, b"bad") + request(METADATA, 3))
        assert (await next_response(reader))[0] == 1
        assert await reader.read() == b""
        assert dispatcher.handled == [1, 2]


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack(">i", -5), "malformed frame"),
        (struct.pack(">i", 1 << 30), "malformed frame"),
        (request(99, 1), "nobody knows 99"),
    ],
    ids=["negative size", "oversized", "refused"],
)
@on_both_loops
async def test_a_bad_peer_costs_one_line_and_its_own_connection(
    sent: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(context: RequestContext, body: bytes) -> Any:
        if context.api_key == 99:
            raise RefusedRequest("nobody knows 99")
        return echo(context, body)

    caplog.clear()
    caplog.set_level(logging.INFO, logger="barnabas")
    async with listening(answer, max_frame_bytes=1 << 20) as (listener, _):
        good_reader, good_writer = await connect(listener)
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1) + sent + request(METADATA, 2))
        assert (await next_response(reader))[0] == 1
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await next_response(reader)
        good_writer.write(request(METADATA, 3))
        assert (await next_response(good_reader))[0] == 3
        assert listener.connection_count == 1
    # Another test's embedded broker may log from its own thread.
    ours = [record for record in caplog.records if record.thread == threading.get_ident()]
    (line,) = [record.getMessage() for record in ours if record.name.startswith("barnabas")]
    assert words in line


@on_both_loops
async def test_a_frame_may_arrive_byte_by_byte() -> None:
    async with listening(echo) as (listener, _):
        reader, writer = await connect(listener)
        for byte in request(METADATA, 5, b"in pieces"):
            writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert await next_response(reader) == (5, b"in pieces")


@pytest.mark.parametrize("has_sendfile", [True, False])
@on_both_loops
async def test_slices_arrive_between_bytes_whatever_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_sendfile: bool
) -> None:
    if not has_sendfile:
        monkeypatch.delattr(os, "sendfile", raising=False)
    data = os.urandom(3_000_000)
    cuts = [(0, 10), (10, 20_000), (20_010, 2_500_000), (100, 0), (7, 300_000)]

    def answer(context: RequestContext, body: bytes) -> Any:
        size = sum(size for _, size in cuts) + 5 * len(cuts)
        parts: list[Any] = [bytearray(struct.pack(">ii", 4 + size, context.correlation_id))]
        for position, length in cuts:
            parts += [bytearray(b"head:"), FileSlice(fd, position, length)]
        return parts

    expected = b"".join(b"head:" + data[position : position + size] for position, size in cuts)
    with log_file(tmp_path, data) as fd:
        async with listening(answer) as (listener, _):
            reader, writer = await connect(listener)
            # Requests wait behind a response on its way; answers stay whole and in order.
            for correlation_id in range(4):
                writer.write(request(FETCH, correlation_id))
            for correlation_id in range(4):
                assert await next_response(reader) == (correlation_id, expected)


@on_both_loops
async def test_slices_without_a_file_are_read() -> None:
    big = os.urandom(200_000)

    def answer(context: RequestContext, body: bytes) -> Any:
        return [bytearray(struct.pack(">ii", 4 + len(big), context.correlation_id)), BytesSlice(big)]

    async with listening(answer) as (listener, _):
        reader, writer = await connect(listener)
        writer.write(request(FETCH, 1))
        assert await next_response(reader) == (1, big)


@on_both_loops
async def test_a_slice_follows_bytes_that_the_transport_still_holds(tmp_path: Path) -> None:
    """The socket is full of an ordinary response when a slice comes: the slice waits for the transport to drain."""
    data, large = os.urandom(1_000_000), os.urandom(6_000_000)
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    with log_file(tmp_path, data) as fd:
        async with listening(answer) as (listener, _):
            reader, writer = await connect(listener)
            writer.write(request(PRODUCE, 1) + request(PRODUCE, 2) + request(PRODUCE, 3))
            await until(lambda: len(waits) == 3)
            waits[0].set_result([response(1, large)])
            waits[1].set_result([bytearray(struct.pack(">ii", 4 + len(data), 2)), FileSlice(fd, 0, len(data))])
            waits[2].set_result([response(3, b"last")])
            assert await next_response(reader) == (1, large)
            assert await next_response(reader) == (2, data)
            assert await next_response(reader) == (3, b"last")


@on_both_loops
async def test_a_log_that_ends_within_a_slice_ends_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(context: RequestContext, body: bytes) -> Any:
        return [bytearray(struct.pack(">ii", 4 + 60_000, context.correlation_id)), FileSlice(fd, 0, 60_000)]

    caplog.clear()
    with log_file(tmp_path, b"x" * 30_000) as fd:
        async with listening(answer) as (listener, _):
            reader, writer = await connect(listener)
            writer.write(request(FETCH, 1))
            with pytest.raises(asyncio.IncompleteReadError):
                await next_response(reader)
    assert "ends within a slice" in caplog.text


@on_both_loops
async def test_a_client_that_never_reads_is_no_longer_read_and_is_ended_by_the_sweep() -> None:
    body = b"r" * 100_000

    async with listening(lambda context, _: [response(context.correlation_id, body)]) as (listener, dispatcher):
        _, writer = await connect(listener, limit=1)
        for correlation_id in range(10_000):
            writer.write(request(METADATA, correlation_id))
        handled = -1
        while handled != len(dispatcher.handled) or not any(each.unsent_bytes for each in listener.connections):
            handled = len(dispatcher.handled)
            other_reader, other_writer = await connect(listener)
            other_writer.write(request(METADATA, 1_000_000))
            assert (await next_response(other_reader))[0] == 1_000_000
            other_writer.close()
            handled += 1
        # What fits into two socket buffers and the transport's limit, and not one response more.
        unsent = [connection for connection in listener.connections if connection.unsent_bytes]
        assert len(unsent) == 1
        assert unsent[0].unsent_bytes <= connection_module.WRITE_LIMIT + len(body) + 8
        for _ in range(12):
            listener.sweep_idle()
        await until(lambda: unsent[0] not in listener.connections)


@on_both_loops
async def test_a_slow_reader_gets_everything_and_costs_no_memory(tmp_path: Path) -> None:
    size = 64 << 20

    def answer(context: RequestContext, body: bytes) -> Any:
        return [bytearray(struct.pack(">ii", 4 + size, context.correlation_id)), FileSlice(fd, 0, size)]

    with log_file(tmp_path, b"") as fd:
        os.truncate(tmp_path / "log", size)
        async with listening(answer) as (listener, _):
            reader, writer = await connect(listener, limit=1 << 16)
            tracemalloc.start()
            try:
                writer.write(request(FETCH, 1))
                got = len(await reader.readexactly(8))
                while got < size + 8:
                    data = await reader.read(1 << 16)
                    assert data, "swept as idle"
                    # Sixteen ticks, each far more than the socket's buffers hold.
                    if got >> 22 != (got + len(data)) >> 22:
                        listener.sweep_idle()
                    got += len(data)
                _, most = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert most < 8 << 20


@on_both_loops
async def test_a_long_poll_is_cancelled_when_its_client_goes() -> None:
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with listening(answer) as (listener, _):
        _, writer = await connect(listener)
        writer.write(request(FETCH, 1))
        await until(lambda: bool(waits))
        writer.close()
        await until(waits[0].cancelled)
        await until(lambda: listener.connection_count == 0)


@pytest.mark.parametrize("ending", ["listener stops", "aborted", "malformed frame", "cancelled produce"])
@on_both_loops
async def test_every_end_of_a_connection_cancels_its_waiting_requests_at_once(ending: str) -> None:
    """Not only when the transport is done: a peer that does not read its responses may keep that from ever happening."""
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with listening(answer, max_frame_bytes=100) as (listener, _):
        _, writer = await connect(listener)
        writer.write(request(PRODUCE, 1) + request(PRODUCE, 2))
        await until(lambda: len(waits) == 2)
        (served,) = listener.connections
        if ending == "listener stops":
            await listener.stop()
        elif ending == "aborted":
            served.abort("for a test")
        elif ending == "malformed frame":
            writer.write(struct.pack(">i", 101))
            await until(lambda: served.is_idle)
        else:
            waits[0].cancel()
            await until(lambda: served.is_idle)
        assert [future.cancelled() for future in waits] == [True, True]
        await until(lambda: listener.connection_count == 0)


@on_both_loops
async def test_a_request_that_closes_its_own_connection_and_waits_is_cancelled() -> None:
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        listener.connections[0].close()
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with listening(answer) as (listener, _):
        reader, writer = await connect(listener)
        writer.write(request(FETCH, 1))
        assert await reader.read() == b""
        assert waits[0].cancelled()


@on_both_loops
async def test_a_bug_in_a_late_response_closes_the_connection_and_is_reported() -> None:
    waits: list[asyncio.Future[Any]] = []
    reported: list[Any] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    asyncio.get_running_loop().set_exception_handler(lambda _, report: reported.append(report["exception"]))
    async with listening(answer) as (listener, _):
        reader, writer = await connect(listener)
        writer.write(request(FETCH, 1))
        await until(lambda: bool(waits))
        waits[0].set_exception(ZeroDivisionError("a bug"))
        assert await reader.read() == b""
        await until(lambda: bool(reported))
        assert isinstance(reported[0], ZeroDivisionError)


@on_both_loops
async def test_silent_connections_are_closed_and_busy_ones_are_not() -> None:
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        if context.api_key == METADATA:
            return echo(context, body)
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with listening(answer) as (listener, _):
        idle_reader, _idle = await connect(listener)
        reader, writer = await connect(listener)
        waiting_reader, waiting = await connect(listener)
        waiting.write(request(FETCH, 9))
        await until(lambda: bool(waits) and listener.connection_count == 3)
        for tick in range(12):
            writer.write(request(METADATA, tick))
            assert (await next_response(reader))[0] == tick
            listener.sweep_idle()
        assert await idle_reader.read() == b""
        assert await waiting_reader.read() == b"", "a request that is never answered ends with its connection"
        await until(lambda: listener.connection_count == 1)
        assert waits[0].cancelled()


@on_both_loops
async def test_an_early_connection_waits_until_the_broker_is_ready() -> None:
    listener = Listener(asyncio.get_running_loop(), host="127.0.0.1")
    await listener.bind()
    reader, writer = await connect(listener)
    writer.write(request(METADATA, 1, b"early"))
    await until(lambda: listener.connection_count == 1)
    listener.serve(ScriptedDispatcher(echo))  # type: ignore[arg-type]
    assert await next_response(reader) == (1, b"early")
    await listener.stop()


@pytest.mark.slow
@on_both_loops
async def test_a_thousand_idle_connections_cost_little_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("needs 4,096 file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    async with listening(echo) as (listener, _):
        clients = []
        for number in range(1000):
            reader, writer = await connect(listener, limit=64)
            writer.write(request(METADATA, number))
            assert (await next_response(reader))[0] == number
            clients.append(writer)
        listener.sweep_buffers()
        assert all(connection._frames is None for connection in listener.connections)
        assert listener.connection_count == 1000
        for writer in clients:
            writer.close()
        await until(lambda: listener.connection_count == 0)


def throttled(context: RequestContext, body: bytes) -> list[bytearray]:
    """An answer after which the connection rests for as many milliseconds as the request says."""
    if body:
        context.accounting = Accounting(0, 0)
        context.accounting.throttle_ms = int(body)
    return echo(context, body)


@on_both_loops
async def test_a_throttled_connection_is_answered_first_and_then_rests() -> None:
    async with listening(throttled) as (listener, dispatcher):
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1, b"3600000") + request(METADATA, 2))
        assert (await next_response(reader))[0] == 1
        (served,) = listener.connections
        assert served.is_muted
        assert not served.is_idle
        other_reader, other_writer = await connect(listener)
        other_writer.write(request(METADATA, 77))
        assert (await next_response(other_reader))[0] == 77
        assert dispatcher.handled == [1, 77]


@on_both_loops
async def test_a_throttled_connection_goes_on_after_its_rest() -> None:
    loop = asyncio.get_running_loop()
    async with listening(throttled) as (listener, _):
        reader, writer = await connect(listener)
        began = loop.time()
        writer.write(request(METADATA, 1, b"60") + request(METADATA, 2))
        assert [(await next_response(reader))[0] for _ in range(2)] == [1, 2]
        assert loop.time() - began >= 0.059
        (served,) = listener.connections
        assert not served.is_muted


@on_both_loops
async def test_a_throttled_connection_may_leave() -> None:
    def answer(context: RequestContext, body: bytes) -> list[bytearray]:
        context.accounting = Accounting(0, 0)
        context.accounting.throttle_ms = 3_600_000
        return echo(context, body)

    async with listening(answer) as (listener, _):
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1))
        assert (await next_response(reader))[0] == 1
        writer.close()
        await until(lambda: listener.connection_count == 0)
