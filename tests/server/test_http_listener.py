"""The small HTTP server: what it answers, and what it refuses, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import http.client
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.server import http_listener
from barnabas.server.http_listener import Answer, HttpListener

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
BODY = b"x" * 5000


async def large() -> Answer:
    return Answer("text/plain", BODY)


async def broken() -> Answer:
    raise RuntimeError("no answer today")


@asynccontextmanager
async def listening() -> AsyncIterator[HttpListener]:
    listener = HttpListener(asyncio.get_running_loop(), "127.0.0.1", 0, {"/large": large, "/broken": broken})
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
                status, fields, body = await ask(reader, writer, "GET /large?x=1 HTTP/1.1\nHost: h\n\n")
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


def test_too_many_connections_are_told_so() -> None:
    async def test() -> None:
        async with listening() as listener:
            kept = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(http_listener.CONNECTIONS)]
            while len(listener.connections) < len(kept):
                await asyncio.sleep(0)
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            assert (await ask(reader, writer, ""))[0] == 503
            kept[0][1].close()
            while len(listener.connections) == len(kept):
                await asyncio.sleep(0)
            assert (await once(listener, "GET /large HTTP/1.1\n\n"))[0] == 200

    asyncio.run(test())


def test_silent_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_listener, "IDLE_SECONDS", 0.01)

    async def test() -> None:
        async with listening() as listener:
            reader, _ = await asyncio.open_connection("127.0.0.1", listener.port)
            assert await reader.read() == b""

    asyncio.run(test())


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
