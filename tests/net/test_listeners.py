"""The addresses that a node registers for its listeners, and the keys that a listener reads before it serves."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.net.connections import Connections
from barnabas.net.listener import Listener
from barnabas.net.listeners import bind_listeners, registered_address
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import securities


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


def test_a_listener_without_its_keys_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    config = BrokerConfig.from_properties(
        {
            "listeners": "OUT://127.0.0.1:0",
            "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.expected.issuer": "https://tokens.example.org",
        }
    )

    async def bind() -> None:
        loop, listeners = asyncio.get_running_loop(), list[Listener]()
        made = securities(config, config.listeners, MetadataImage, lambda: 0, RenewedStores(cast("Any", None), 1))
        connections = Connections(config, listeners, loop, 100)
        try:
            await bind_listeners(
                config.listeners, listeners, connections, config, loop=loop, now_ms=lambda: 0, securities=made
            )
        finally:
            for listener in listeners:
                await listener.stop()

    with pytest.raises(CannotStart) as caught:
        asyncio.run(bind())
    setting = "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
    assert str(caught.value) == f"{setting}: {file.as_uri()}: the file cannot be read (No such file or directory)"
