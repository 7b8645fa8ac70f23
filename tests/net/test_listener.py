"""A listener without sockets: its pool of buffers, and the addresses of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.net.listener import SPARE_BUFFERS, Listener
from barnabas.protocol.framing import READ_BYTES, FrameBuffer


class Transport:
    def __init__(self, peer: Any, local: Any) -> None:
        self._info = {"peername": peer, "sockname": local}

    def get_extra_info(self, name: str) -> Any:
        return self._info[name]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_a_buffer_that_was_given_back_is_lent_again(loop: asyncio.AbstractEventLoop) -> None:
    listener = Listener(loop)
    buffer = listener.take_buffer()
    listener.give_back(buffer)
    assert listener.take_buffer() is buffer
    assert listener.take_buffer() is not buffer


def test_the_pool_keeps_no_large_and_not_many_buffers(loop: asyncio.AbstractEventLoop) -> None:
    listener = Listener(loop)
    listener.give_back(FrameBuffer(listener.max_frame_bytes, 2 * READ_BYTES))
    assert listener._spare_buffers == []
    for _ in range(SPARE_BUFFERS + 1):
        listener.give_back(FrameBuffer(listener.max_frame_bytes))
    assert len(listener._spare_buffers) == SPARE_BUFFERS


@pytest.mark.parametrize(
    ("host", "local", "dialled"),
    [
        ("", "10.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ("broker.example", "10.0.0.1", "broker.example"),
        ("", "::ffff:10.0.0.1", "10.0.0.1"),
        ("", "fe80::1", "fe80::1"),
    ],
    ids=["every address", "an address", "a name", "IPv4 by an IPv6 socket", "IPv6"],
)
def test_a_client_dialled_the_listeners_name_or_the_local_address(
    loop: asyncio.AbstractEventLoop, host: str, local: str, dialled: str
) -> None:
    listener = Listener(loop, host=host)
    info = listener.describe(Transport(("::ffff:10.0.0.9", 50_000), (local, 9092)))  # type: ignore[arg-type]
    assert (info.local_host, info.local_port) == (dialled, 9092)
    assert (info.peer_host, info.peer_port) == ("10.0.0.9", 50_000)


def test_connection_ids_differ_even_for_one_pair_of_addresses(loop: asyncio.AbstractEventLoop) -> None:
    listener = Listener(loop)
    transport: Any = Transport(("10.0.0.9", 50_000), ("10.0.0.1", 9092))
    ids = [listener.describe(transport).connection_id for _ in range(2)]
    assert ids == ["10.0.0.1:9092-10.0.0.9:50000-1", "10.0.0.1:9092-10.0.0.9:50000-2"]
