"""The wiring of replication between brokers: settings, connections and the controller for `ReplicatedPartitions`.

A broker imports this module when it gets its first partition that another broker has too.

Each fetcher has a connection of its own to its leader, because a Fetch may wait for long. It is asked for at each request: it has another
address when the leader has registered again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.replication.alter_partition_manager import AlterPartitionManager
from barnabas.replication.leader_end_point import RemoteLeaderEndPoint
from barnabas.replication.replica_fetcher import FetcherConfig
from barnabas.replication.replica_fetcher_manager import ReplicaFetcherManager
from barnabas.replication.replicated_partitions import ReplicatedPartitions

if TYPE_CHECKING:
    from barnabas.config.config import BrokerConfig
    from barnabas.node.inter_broker import InterBrokerChannels
    from barnabas.protocol.message import Message
    from barnabas.replication.alter_partition_manager import Controller
    from barnabas.replication.replica_fetcher_manager import FetcherId
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["fetcher_config", "replicated_partitions"]


class _ConnectionTo:
    """The present connection of one fetcher to its leader."""

    def __init__(self, channels: InterBrokerChannels, fetcher: FetcherId) -> None:
        self._channels = channels
        self._broker_id = fetcher.leader
        self._purpose = f"fetcher-{fetcher.number}"

    def __repr__(self) -> str:
        return f"<_ConnectionTo broker={self._broker_id} {self._purpose}>"

    async def request(
        self, message: Message, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        channel = self._channels.channel(self._broker_id, self._purpose)
        return await channel.request(message, version=version, highest=highest, timeout_ms=timeout_ms)


def fetcher_config(config: BrokerConfig) -> FetcherConfig:
    """Return the settings replica.fetch.*."""
    return FetcherConfig(
        config.node_id,
        fetch_max_bytes=config.replica_fetch_max_bytes,
        response_max_bytes=config.int_value("replica.fetch.response.max.bytes"),
        min_bytes=config.int_value("replica.fetch.min.bytes"),
        wait_max_ms=config.replica_fetch_wait_max_ms,
        backoff_ms=config.int_value("replica.fetch.backoff.ms"),
    )


def replicated_partitions(
    replicas: ReplicaManager,
    config: BrokerConfig,
    channels: InterBrokerChannels,
    controller: Controller,
    broker_epoch: Callable[[], int],
    loop: asyncio.AbstractEventLoop,
) -> ReplicatedPartitions:
    """Make what keeps this broker's replicas and those of other brokers alike."""
    timeout_ms = config.int_value("replica.socket.timeout.ms")

    def connect(fetcher: FetcherId) -> RemoteLeaderEndPoint:
        return RemoteLeaderEndPoint(_ConnectionTo(channels, fetcher), timeout_ms)

    fetchers = ReplicaFetcherManager(
        fetcher_config(config),
        connect,
        broker_epoch,
        replicas.follower_advanced,
        loop,
        replicas.fetchers_per_leader,
        replicas.follower_quota,
    )
    isr_changes = AlterPartitionManager(config.node_id, broker_epoch, controller, loop)
    return ReplicatedPartitions(fetchers, isr_changes, replicas.lag_time_max_ms, loop)
