"""The limits that listeners share: from the settings of the node and of one listener, and from settings that change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.net.connections import Connections
from barnabas.protocol.messages import IncrementalAlterConfigsRequest
from tests.api.served_node import Serving
from tests.net.listening import until


def connections_of(config: BrokerConfig) -> Connections:
    """Return what the listeners of a broker share, with the static settings applied."""
    loop = asyncio.new_event_loop()
    loop.close()
    made = Connections(config, [], loop, 100)
    made.configure()
    return made


def set_broker(serving: Serving, name: str, value: str) -> int:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=4,
        resource_name="",
        configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)],
    )
    return serving.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code


def test_limits_change_while_the_node_runs(tmp_path: Path) -> None:
    serving = Serving(tmp_path, max_connections="100")
    listener = serving.server.listeners[0]

    async def clients(count: int) -> list[Any]:
        made = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(count)]
        await until(lambda: listener.connection_count == count)
        return made

    made = serving.loop.run_until_complete(clients(5))
    assert set_broker(serving, "max.connections", "2") == 0

    async def settle(count: int) -> None:
        await until(lambda: listener.connection_count == count)

    serving.loop.run_until_complete(settle(2))
    assert set_broker(serving, "max.connections.per.ip.overrides", "127.0.0.1:1") == 0
    assert serving.server.connections.quotas.limits.overrides == {"127.0.0.1": 1}
    assert set_broker(serving, "max.connections.per.ip.overrides", "nonsense") == 0
    assert serving.server.connections.quotas.limits.overrides == {"127.0.0.1": 1}
    for _, writer in made:
        writer.close()
    serving.close()


def test_settings_of_one_listener(tmp_path: Path) -> None:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT",
        "listener.name.second.max.connections": "7",
        "listener.name.second.max.connection.creation.rate": "9",
        "log.dirs": str(tmp_path),
    }
    config = BrokerConfig.from_properties(properties)
    assert config.unknown == ()
    limits = connections_of(config).quotas.limits
    assert limits.listeners["SECOND"] == (7, 9)
    assert limits.protected_listener == "PLAINTEXT"
    between = BrokerConfig.from_properties({**properties, "inter.broker.listener.name": "second"})
    assert connections_of(between).quotas.limits.protected_listener == "SECOND"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queued.max.request.bytes", "1000"),
        ("max.connections.per.ip.overrides", "somewhere:1"),
        ("listener.name.plaintext.max.connections", "0"),
    ],
)
def test_limits_that_cannot_be_stop_the_start(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(CannotStart, match=name.rpartition(".")[2]):
        Serving(tmp_path, **{name: value})


def test_the_default_bounds_the_memory_and_follows_the_largest_request(tmp_path: Path) -> None:
    def limit(**properties: str) -> int | None:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = BrokerConfig.from_properties(
            {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), **given}
        )
        memory = connections_of(config).memory
        return None if memory is None else memory.limit_bytes

    assert limit() == 256 << 20
    assert limit(socket_request_max_bytes=str(1 << 30)) == 1 << 30
    assert limit(queued_max_request_bytes=str(1 << 29)) == 1 << 29
    assert limit(queued_max_request_bytes="-1") is None
