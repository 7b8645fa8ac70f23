"""The settings and connections of the fetches from other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.config_checks import selects_by_rack
from barnabas.node.replica_fetching import fetcher_config, replicated_partitions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import FetchRequest, FetchResponse
from barnabas.replication.replica_fetcher import FetcherConfig
from tests.replication.hosting import NODE, Hosting


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    made = Hosting(tmp_path)
    yield made
    made.close()


class Channels:
    """The channels to brokers that do not answer; those of a broker end when it registers again."""

    def __init__(self) -> None:
        self.incarnation = 1
        self.asked: list[tuple[int, int, str, int | None, int | None]] = []
        self.under_way: list[asyncio.Future[Any]] = []

    def channel(self, broker_id: int, purpose: str) -> Any:
        if not self.incarnation:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
        return Channel(self, broker_id, self.incarnation, purpose)


class Channel:
    def __init__(self, channels: Channels, broker_id: int, incarnation: int, purpose: str) -> None:
        self.channels, self.broker_id, self.incarnation, self.purpose = channels, broker_id, incarnation, purpose

    async def request(
        self, message: Any, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        assert isinstance(message, FetchRequest)
        assert version is None
        self.channels.asked.append((self.broker_id, self.incarnation, self.purpose, highest, timeout_ms))
        waiting: asyncio.Future[FetchResponse] = asyncio.get_running_loop().create_future()
        self.channels.under_way.append(waiting)
        return await waiting


def test_the_settings_of_the_fetches() -> None:
    config = BrokerConfig.from_properties(
        {
            "node.id": "7",
            "replica.fetch.max.bytes": "1",
            "replica.fetch.response.max.bytes": "2",
            "replica.fetch.min.bytes": "3",
            "replica.fetch.wait.max.ms": "4",
            "replica.fetch.backoff.ms": "5",
        },
        served=False,
    )
    assert fetcher_config(config) == FetcherConfig(7, 1, 2, 3, 4, 5)
    assert config.without_effect == ()
    assert fetcher_config(BrokerConfig.from_properties({}, served=False)) == FetcherConfig(1)


def test_each_request_asks_for_the_present_connection(hosting: Hosting) -> None:
    channels, config = Channels(), BrokerConfig.from_properties({"replica.socket.timeout.ms": "900"}, served=False)

    def make(replicas: Any) -> Any:
        return replicated_partitions(replicas, config, channels, None, lambda: 5, hosting.loop)  # type: ignore[arg-type]

    hosting.replicas.make_replicated = make
    hosting.create_topic("t", replicas=(NODE, 2), leader=2)
    hosting.advance(10)
    channels.incarnation = 2
    channels.under_way.pop().set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    hosting.advance(1010)
    assert channels.asked == [(2, 1, "fetcher-0", 18, 1400), (2, 2, "fetcher-0", 18, 1400)]
    channels.incarnation = 0
    channels.under_way.pop().set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    hosting.advance(3000)
    channels.incarnation = 3
    hosting.advance(1000)
    assert [incarnation for _, incarnation, *_ in channels.asked] == [1, 2, 3]
    hosting.replicas.close()
    hosting.advance(1)


@pytest.mark.parametrize(
    ("given", "by_rack"),
    [
        (None, False),
        ("", False),
        ("org.apache.kafka.common.replica.LeaderSelector", False),
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", True),
    ],
)
def test_the_replica_selectors_that_come_with_kafka(given: str | None, by_rack: bool) -> None:
    properties = {} if given is None else {"replica.selector.class": given}
    assert selects_by_rack(BrokerConfig.from_properties(properties, served=False).value) is by_rack


def test_another_replica_selector_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"com\.example\.Nearest for configuration replica\.selector\.class"):
        BrokerConfig.from_properties({"replica.selector.class": "com.example.Nearest"}, served=False)
