"""The small HTTP server: what it answers, and what it refuses, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import http.client
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.net import http_listener
from barnabas.net.http_listener import Answer, HttpListener
from tests.net.listening import on_both_loops

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
BODY = b"x" * 5000


async def large() -> Answer:
    return Answer("text/plain", BODY)


async def broken() -> Answer:
    raise RuntimeError("no answer today")


@asynccontextmanager
async def listening() -> AsyncIterator[HttpListener]:
    routes = {"/large": large, "/broken": broken}
    listener = HttpListener(asyncio.get_running_loop(), "127.0.0.1", 0, routes, costly=("/large",))
    await listener.bind()
    try:
        yield listener
    finally:
        listener.close()


async def ask(reader: Reader, writer: Writer, head: str, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
    writer.write(head.replace("\n", "\r\n").encode())
    raw = await reader.readuntil(b"\r\n\r\n")
    status_line, *lines = raw.decode().strip().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(fields["content-length"])) if has_body else b""
    return int(status_line.split()[1]), fields, body


async def once(listener: HttpListener, head: str) -> tuple[int, dict[str, str], bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        return await ask(reader, writer, head)
    finally:
        writer.close()


def test_a_connection_is_kept_for_several_requests() -> None:
    async def test() -> None:
        async with listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            for _ in range(2):
                status, fields, body = await ask(reader, writer, "GET /large?x=1 HTTP/1.1\nHost: localhost\n\n")
                assert (status, fields["connection"], body) == (200, "keep-alive", BODY)
            status, fields, _ = await ask(reader, writer, "HEAD /large HTTP/1.1\n\n", has_body=False)
            assert (status, fields["content-length"]) == (200, "5000")
            status, fields, _ = await ask(reader, writer, "GET /large HTTP/1.1\nConnection: close\n\n")
            assert fields["connection"] == "close"
            assert await reader.read() == b""

    asyncio.run(test())


def test_pipelined_requests_are_answered_in_order() -> None:
    async def test() -> None:
        async with listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"GET /large HTTP/1.1\r\n\r\n")
            assert (await ask(reader, writer, "GET /none HTTP/1.1\n\n"))[0] == 200
            assert (await ask(reader, writer, "GET /large HTTP/1.1\n\n"))[0] == 404

    asyncio.run(test())


@pytest.mark.parametrize("accepts", ["gzip", "br, gzip;q=0.5"])
def test_who_takes_gzip_gets_it(accepts: str) -> None:
    async def test() -> None:
        async with listening() as listener:
            _, fields, body = await once(listener, f"GET /large HTTP/1.1\nAccept-Encoding: {accepts}\n\n")
            assert fields["content-encoding"] == "gzip"
            assert gzip.decompress(body) == BODY

    asyncio.run(test())


@pytest.mark.parametrize("accepts", ["identity", "gzip;q=0"])
def test_who_does_not_take_gzip_gets_it_plain(accepts: str) -> None:
    async def test() -> None:
        async with listening() as listener:
            _, fields, body = await once(listener, f"GET /large HTTP/1.1\nAccept-Encoding: {accepts}\n\n")
            assert "content-encoding" not in fields
            assert body == BODY

    asyncio.run(test())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /none HTTP/1.1\n\n", 404),
        ("POST /large HTTP/1.1\n\n", 405),
        ("GET /broken HTTP/1.1\n\n", 500),
        ("GET /large HTTP/1.1\nContent-Length: 5\n\n", 400),
        ("GET /large HTTP/1.1\nTransfer-Encoding: chunked\n\n", 400),
        ("GET /large\n\n", 400),
        ("GET large HTTP/1.1\n\n", 400),
        ("GET /large HTTP/2.0\n\n", 400),
        ("GET /large HTTP/1.1\nno colon\n\n", 400),
        ("GET /large HTTP/1.1\nHost: localhost\nHost: localhost\n\n", 400),
        ("GET /large HTTP/1.1\nHost: evil.example\n\n", 403),
        ("GET /none HTTP/1.0\nHost: evil.example:9308\n\n", 403),
        ("GET /large HTTP/1.1\nX: " + "y" * 9000 + "\n\n", 431),
        ("GET /large HTTP/1.1\nX: " + "y" * 9000, 431),
    ],
)
def test_what_cannot_be_answered_has_its_status(head: str, status: int) -> None:
    async def test() -> None:
        async with listening() as listener:
            assert (await once(listener, head))[0] == status
            assert (await once(listener, "GET /large HTTP/1.1\n\n"))[0] == 200

    asyncio.run(test())


async def slow() -> Answer:
    """An answer that is being made for ever."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def fill(listener: HttpListener, count: int, head: bytes = b"") -> list[tuple[Reader, Writer]]:
    made = []
    for number in range(count):
        made.append(await asyncio.open_connection("127.0.0.1", listener.port))
        made[-1][1].write(head)
        while len(listener.connections) <= number:
            await asyncio.sleep(0)
    return made


@on_both_loops
async def test_the_connection_that_is_silent_longest_makes_room() -> None:
    async with listening() as listener:
        kept = await fill(listener, http_listener.CONNECTIONS)
        # The first one asks, and is then the last to make room.
        assert (await ask(*kept[0], "GET /large HTTP/1.1\n\n"))[0] == 200
        assert (await once(listener, "GET /large HTTP/1.1\n\n"))[0] == 200
        assert await kept[1][0].read() == b""
        assert (await ask(*kept[0], "GET /large HTTP/1.1\n\n"))[0] == 200


@on_both_loops
async def test_a_client_that_does_not_take_its_answer_makes_room_for_a_health_check() -> None:
    async with listening() as listener:
        listener.routes["/huge"] = huge
        await fill(listener, http_listener.CONNECTIONS, b"GET /huge HTTP/1.1\r\n\r\n")
        while not all(connection.is_stuck for connection in listener.connections):
            await asyncio.sleep(0)
        assert (await once(listener, "GET /none HTTP/1.1\n\n"))[0] == 404


@on_both_loops
async def test_when_all_answers_are_being_made_the_next_client_gets_cheap_ones_only() -> None:
    async with listening() as listener:
        listener.routes["/slow"] = slow
        busy = await fill(listener, http_listener.CONNECTIONS, b"GET /slow HTTP/1.1\r\n\r\n")
        while any(connection.is_silent for connection in listener.connections):
            await asyncio.sleep(0)
        assert (await once(listener, "GET /large HTTP/1.1\n\n"))[0] == 503
        assert (await once(listener, "GET /none HTTP/1.1\n\n"))[0] == 404
        for _ in range(5):
            busy.append(await asyncio.open_connection("127.0.0.1", listener.port))
        assert await busy[-2][0].read() == b""
        assert len(listener.connections) <= http_listener.CONNECTIONS + 1


HUGE = bytes(8 << 20)


async def huge() -> Answer:
    return Answer("text/plain", HUGE)


@on_both_loops
async def test_pipelined_requests_of_a_client_that_does_not_read_cost_one_answer() -> None:
    made = 0

    async def counted() -> Answer:
        nonlocal made
        made += 1
        return await huge()

    async with listening() as listener:
        listener.routes["/counted"] = counted
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1)
        writer.write(b"GET /counted HTTP/1.1\r\n\r\n" * 10_000)
        while not made or not listener.unsent_bytes:
            await asyncio.sleep(0)
        for _ in range(100):
            assert (await once(listener, "GET /none HTTP/1.1\n\n"))[0] == 404
        assert made == 1
        assert listener.unsent_bytes <= len(HUGE) + 1000
        (connection,) = (one for one in listener.connections if one.is_stuck)
        assert connection._received <= http_listener.HEAD_BYTES + 4
        writer.close()


@on_both_loops
async def test_answers_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "UNSENT_BYTES", 1 << 20)
    async with listening() as listener:
        listener.routes["/huge"] = huge
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1)
        writer.write(b"GET /huge HTTP/1.1\r\n\r\n")
        while not listener.unsent_bytes:
            await asyncio.sleep(0)
        assert (await once(listener, "GET /huge HTTP/1.1\n\n"))[0] == 503
        assert (await once(listener, "GET /large HTTP/1.1\n\n"))[0] == 200, "a small answer is given all the same"
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /large HT", b"GET /huge HTTP/1.1\r\n\r\n", b"BAD\r\n\r\n"])
@on_both_loops
async def test_what_does_not_go_on_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """An idle connection, half a head, an answer that is not taken, a last answer that is not taken."""
    for name in ("IDLE_SECONDS", "HEAD_SECONDS", "WRITE_SECONDS"):
        monkeypatch.setattr(http_listener, name, 0.01)
    async with listening() as listener:
        listener.routes["/huge"] = huge
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1)
        writer.write(sent)
        while not listener.connections:
            await asyncio.sleep(0)
        while listener.connections:
            await asyncio.sleep(0)
        writer.close()


@on_both_loops
async def test_a_head_that_arrives_byte_by_byte_has_one_deadline() -> None:
    async with listening() as listener:
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        deadlines = set()
        for number in range(1, 20):
            writer.write(b"G")
            while not listener.connections or next(iter(listener.connections))._received < number:
                await asyncio.sleep(0)
            deadlines.add(next(iter(listener.connections))._deadline)
        assert len(deadlines) == 1
        writer.close()


def test_an_answer_that_fails_is_logged_and_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(data: bytes, level: int) -> bytes:
        raise RuntimeError("no thread today")

    monkeypatch.setattr(gzip, "compress", fail)

    async def test() -> None:
        async with listening() as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(b"GET /large HTTP/1.1\r\nAccept-Encoding: gzip\r\n\r\n")
            assert await reader.read() == b""

    asyncio.run(test())
    assert "An answer to" in caplog.text
    assert "never retrieved" not in caplog.text


def test_pythons_own_client_reads_it() -> None:
    async def test() -> None:
        async with listening() as listener:

            def get() -> bytes:
                connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=60)
                connection.request("GET", "/large")
                answer = connection.getresponse()
                assert answer.status == 200
                return answer.read()

            assert await asyncio.get_running_loop().run_in_executor(None, get) == BODY

    asyncio.run(test())
