"""Limits on connections over real sockets: waiting at the door, closing later, request memory."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Any

import pytest

from barnabas.api.serving.context import RequestContext
from barnabas.net import request_memory
from barnabas.net.request_memory import RequestMemory
from barnabas.quota.connection_quotas import ConnectionLimits, ConnectionQuotas
from tests.net.listening import connect, echo, listening, next_response, on_both_loops, until
from tests.net.scripted_dispatcher import METADATA, request


def quotas(**limits: Any) -> ConnectionQuotas:
    return ConnectionQuotas(ConnectionLimits(**limits))


@on_both_loops
async def test_too_many_from_one_address_are_closed() -> None:
    async with listening(echo, quotas=quotas(per_ip=2)) as (listener, _):
        first, second = await connect(listener), await connect(listener)
        for number, (reader, writer) in enumerate((first, second)):
            writer.write(request(METADATA, number))
            assert (await next_response(reader))[0] == number
        refused_reader, _ = await connect(listener)
        assert await refused_reader.read() == b""
        assert listener.rejected == 1
        first[1].close()
        await until(lambda: listener.connection_count == 1)
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 5))
        assert (await next_response(reader))[0] == 5


@on_both_loops
async def test_beyond_max_connections_they_wait_in_order_until_one_leaves() -> None:
    async with listening(echo, quotas=quotas(connections=1), backlog=2) as (listener, dispatcher):
        _, admitted = await connect(listener)
        await until(lambda: listener.connection_count == 1)
        waiting = []
        for number in (1, 2):
            reader, writer = await connect(listener)
            writer.write(request(METADATA, number))
            waiting.append((reader, writer))
            await until(lambda number=number: listener.waiting_count == number)
        overflow, _ = await connect(listener)
        assert await overflow.read() == b""
        assert dispatcher.handled == []
        admitted.close()
        assert (await next_response(waiting[0][0]))[0] == 1
        assert listener.waiting_count == 1
        waiting[0][1].close()
        assert (await next_response(waiting[1][0]))[0] == 2


@on_both_loops
async def test_a_waiting_connection_may_leave() -> None:
    async with listening(echo, quotas=quotas(connections=1)) as (listener, _):
        _, admitted = await connect(listener)
        await until(lambda: listener.connection_count == 1)
        _, impatient = await connect(listener)
        await until(lambda: listener.waiting_count == 1)
        impatient.close()
        await until(lambda: listener.waiting_count == 0)
        admitted.close()
        await until(lambda: listener.connection_count == 0)
        assert listener.quotas.total == 0


@on_both_loops
async def test_a_fast_broker_admits_at_its_rate() -> None:
    loop = asyncio.get_running_loop()
    limited = ConnectionQuotas(ConnectionLimits(creation_rate=20), samples=2, window_seconds=1)
    async with listening(echo, quotas=limited, now_ms=lambda: 0) as (listener, _):
        began = loop.time()
        kept = []
        for number in range(22):
            reader, writer = await connect(listener)
            kept.append(writer)
            writer.write(request(METADATA, number))
            assert (await next_response(reader))[0] == number
        # All come in one instant: twenty are within the rate, the two behind them wait 50 ms and 100 ms.
        assert loop.time() - began >= 0.149
        assert listener.connection_count == len(kept)


@on_both_loops
async def test_a_fast_address_is_not_answered_and_closed_after_its_rest() -> None:
    loop = asyncio.get_running_loop()
    limited = ConnectionQuotas(samples=2, window_seconds=1)
    limited.apply({(("ip", "127.0.0.1"),): {"connection_creation_rate": 10.0}})
    async with listening(echo, quotas=limited, now_ms=lambda: 0) as (listener, dispatcher):
        kept = [await connect(listener) for _ in range(10)]
        await until(lambda: listener.connection_count == 10)
        began = loop.time()
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1))
        # A request that was not even read when the connection was closed makes its end a reset.
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert loop.time() - began >= 0.099
        assert dispatcher.handled == []
        assert limited.total == len(kept)


@on_both_loops
async def test_request_memory_is_shared_and_served_in_order() -> None:
    size = 200_000

    memory = RequestMemory(4 * size, asyncio.get_running_loop())

    def answer(context: RequestContext, body: bytes) -> Any:
        assert len(body) == size
        return echo(context, b"")

    async with listening(answer, memory=memory) as (listener, dispatcher):
        frames = [request(METADATA, number, bytes(size)) for number in range(3)]
        clients = []
        for number, frame in enumerate(frames):
            reader, writer = await connect(listener)
            writer.write(frame[: size // 2])
            clients.append((reader, writer))
            await until(lambda: memory.used >= len(frames[0]))
            await until(lambda number=number: memory.depleted == number)
        # The first one has its memory; the others are not read from, so what they send stays in the system's buffers.
        for number in (2, 1):
            clients[number][1].write(frames[number][size // 2 :])
        assert dispatcher.handled == []
        clients[0][1].write(frames[0][size // 2 :])
        for reader, _ in clients:
            await next_response(reader)
        assert dispatcher.handled == [0, 1, 2]
        assert memory.used == len(frames[0]), "the last one keeps its buffer for the next request"
        listener.sweep_buffers()
        assert memory.used == 0


@on_both_loops
async def test_memory_comes_back_from_who_leaves_in_the_middle() -> None:
    memory = RequestMemory(100_000, asyncio.get_running_loop())
    async with listening(echo, memory=memory) as (listener, _):
        frame = request(METADATA, 1, bytes(150_000))
        _, first = await connect(listener)
        first.write(frame[:1000])
        await until(lambda: memory.used == len(frame))
        reader, second = await connect(listener)
        second.write(frame)
        await until(lambda: memory.depleted == 1)
        _, third = await connect(listener)
        third.write(frame[:1000])
        await until(lambda: memory.depleted == 2)
        third.close()
        first.close()
        assert (await next_response(reader))[0] == 1
        second.close()
        await until(lambda: memory.used == 0)


@on_both_loops
async def test_without_a_large_request_no_memory_is_counted() -> None:
    memory = RequestMemory(1, asyncio.get_running_loop())
    async with listening(echo, memory=memory) as (listener, _):
        _, other = await connect(listener)
        other.write(request(METADATA, 1, bytes(100_000))[:1000])
        await until(lambda: memory.used > 100_000)
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1, b"x" * 60_000))
        assert (await next_response(reader))[0] == 1
        assert memory.depleted == 0


@on_both_loops
async def test_a_size_field_alone_takes_no_memory_yet_bounds_are_kept() -> None:
    memory = RequestMemory(10_000_000, asyncio.get_running_loop())
    async with listening(echo, memory=memory, max_frame_bytes=50_000_000) as (listener, _):
        reader, writer = await connect(listener)
        writer.write(struct.pack(">i", 60_000_000))
        assert await reader.read() == b""
        assert memory.used == 0


@on_both_loops
async def test_half_a_request_ends_after_a_minute_and_other_connections_stay() -> None:
    async with listening(echo) as (listener, _):
        reader, half = await connect(listener)
        half.write(request(METADATA, 1, bytes(500))[:100])
        good_reader, good = await connect(listener)
        await until(lambda: listener.connection_count == 2)
        await until(lambda: any(connection._frames is not None for connection in listener.connections))
        for sweep in range(13):
            good.write(request(METADATA, sweep))
            assert (await next_response(good_reader))[0] == sweep
            listener.sweep_buffers()
        assert await reader.read() == b""
        await until(lambda: listener.connection_count == 1)


@on_both_loops
async def test_half_requests_do_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty half requests announce more memory than there is; requests of every size are answered all the same."""
    monkeypatch.setattr(request_memory, "LOOK_SECONDS", 3600)  # the test looks itself
    loop = asyncio.get_running_loop()
    memory = RequestMemory(40_000_000, loop)
    async with listening(lambda context, body: echo(context, b"%d" % len(body)), memory=memory) as (listener, _):
        hostile = []
        for _ in range(40):
            reader, writer = await connect(listener)
            writer.write(struct.pack(">i", 19_000_000) + bytes(100_000))
            hostile.append((reader, writer))
        await until(lambda: memory.waiting_count == 39)
        for size in (100, 1_000_000):
            reader, writer = await connect(listener)
            writer.write(request(METADATA, size, bytes(size)))
            assert await next_response(reader) == (size, b"%d" % size)
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 7, bytes(5_000_000)))
        await until(lambda: memory.waiting_count == 40)
        for _ in range(2):
            memory._look_at_shares()
        assert await next_response(reader) == (7, b"5000000")
        assert memory.used <= 40_000_000
        for _, writer in hostile:
            writer.close()


@on_both_loops
async def test_a_large_request_counts_until_it_is_answered() -> None:
    """The executor has a copy of it while it decodes."""
    waits: list[asyncio.Future[Any]] = []

    def answer(context: RequestContext, body: bytes) -> Any:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    memory = RequestMemory(10_000_000, asyncio.get_running_loop())
    async with listening(answer, memory=memory) as (listener, _):
        reader, writer = await connect(listener)
        frame = request(METADATA, 1, bytes(4_000_000))
        writer.write(frame)
        await until(lambda: bool(waits))
        for _ in range(20):
            listener.sweep_buffers()
        assert memory.used == len(frame)
        waits[0].set_result(echo(context=RequestContext(None, None, 3, 1, 1), body=b""))  # type: ignore[arg-type]
        assert (await next_response(reader))[0] == 1
        listener.sweep_buffers()
        assert memory.used == 0
