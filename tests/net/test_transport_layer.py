"""Sockets that are bound and accept, for every listener."""

from __future__ import annotations

import asyncio
import errno
from contextlib import closing
from typing import cast

import pytest

from barnabas.net.transport_layer import listen
from tests.net.listening import on_both_loops


class Greeting(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(b"hello")


async def greeted(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        return await reader.readexactly(5)
    finally:
        writer.close()


@on_both_loops
async def test_each_accepted_socket_gets_a_protocol_of_its_own() -> None:
    made: list[Greeting] = []

    def make() -> Greeting:
        made.append(Greeting())
        return made[-1]

    server, hosts, port = await listen(asyncio.get_running_loop(), make, "127.0.0.1", 0)
    with closing(server):
        assert hosts == ("127.0.0.1",)
        assert [await greeted("127.0.0.1", port) for _ in range(2)] == [b"hello"] * 2
    assert len(set(made)) == 2


@on_both_loops
async def test_a_free_port_of_every_address_is_one_port() -> None:
    server, hosts, port = await listen(asyncio.get_running_loop(), Greeting, "", 0)
    with closing(server):
        assert hosts == ("0.0.0.0",)
        assert {bound.getsockname()[1] for bound in server.sockets} == {port}
        assert await greeted("127.0.0.1", port) == b"hello"


@on_both_loops
async def test_a_port_in_use_is_an_error() -> None:
    server, _, port = await listen(asyncio.get_running_loop(), Greeting, "127.0.0.1", 0)
    with closing(server), pytest.raises(OSError) as caught:
        await listen(asyncio.get_running_loop(), Greeting, "127.0.0.1", port)
    assert caught.value.errno == errno.EADDRINUSE
