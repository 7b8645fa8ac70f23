"""The addresses that a node registers for its listeners."""

from __future__ import annotations

import asyncio
import socket

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.net.listener import Listener
from barnabas.net.listeners import registered_address


@pytest.mark.parametrize(
    ("advertised", "host", "expected"),
    [
        (None, "127.0.0.1", ("127.0.0.1", 7000)),
        (None, "", (socket.gethostname(), 7000)),
        ("PLAINTEXT://b.example:80,CONTROLLER://c.example:81", "127.0.0.1", ("c.example", 81)),
        ("PLAINTEXT://b.example:80", "10.0.0.1", ("10.0.0.1", 7000)),
        ("PLAINTEXT://b.example:80,CONTROLLER://c.example:0", "", ("c.example", 7000)),
    ],
)
def test_the_advertised_address_is_registered_else_the_bound_one(
    advertised: str | None, host: str, expected: tuple[str, int]
) -> None:
    properties = {
        "listeners": f"PLAINTEXT://:9092,CONTROLLER://{host}:0",
        "controller.listener.names": "CONTROLLER",
        **({} if advertised is None else {"advertised.listeners": advertised}),
    }
    loop = asyncio.new_event_loop()
    listener = Listener(loop, name="CONTROLLER", host=host, port=7000)
    assert registered_address(BrokerConfig.from_properties(properties), listener) == expected
    loop.close()
