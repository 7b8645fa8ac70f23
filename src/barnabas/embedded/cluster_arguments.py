"""The arguments of `barnabas.Cluster` and its methods, checked: each mistake is one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.config.config import ConfigError
from barnabas.embedded.broker_arguments import checked_config, setting_texts
from barnabas.process.local_cluster import NODES_MAX, OWN_SETTINGS

__all__ = [
    "CLUSTER_DEFAULTS",
    "both_ways",
    "checked_brokers",
    "checked_settings",
    "cluster_settings",
    "ordered_pairs",
]

__tracebackhide__ = True  # pytest's reports end at the caller's line

CLUSTER_DEFAULTS = {
    # A killed process loses nothing that it has written; only a machine without power would.
    "barnabas.metadata.flush": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    # The timeouts that a test waits for, when a node stands still or is cut off.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "200",
    "replica.lag.time.max.ms": "2000",
    # Only a test moves leaders.
    "auto.leader.rebalance.enable": "false",
    # Each partition of them is created, and deleted by a reset, on three nodes.
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}
"""Defaults of a cluster's nodes that are not Kafka's."""


def checked_brokers(brokers: int) -> int:
    if isinstance(brokers, bool) or not isinstance(brokers, int):
        raise TypeError(f"brokers={brokers!r} is not a number: pass 1 to {NODES_MAX}")
    if not 1 <= brokers <= NODES_MAX:
        raise ValueError(f"brokers={brokers}: pass 1 to {NODES_MAX}")
    return brokers


def cluster_settings(config: Mapping[str, object] | None, secured: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the settings of every node: the defaults of a cluster, and the argument `config` over them; raise as `checked_settings`."""
    return {**CLUSTER_DEFAULTS, **checked_settings(config, secured)}


def checked_settings(config: Mapping[str, object] | None, secured: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the argument `config`.

    Args:
        secured: the settings of security, of a node alone.

    Raises:
        ConfigError: a setting is unknown or not valid, or each node has its own.
    """
    settings = setting_texts(config)
    for name in settings:
        if name in OWN_SETTINGS:
            raise ConfigError(f"{name} is not a setting of a cluster: each node has its own")
    checked_config({**(secured or {}), **settings, "log.dirs": "/"})
    return settings


def ordered_pairs(sources: Iterable[int], targets: Iterable[int]) -> set[tuple[int, int]]:
    """Return every way from one of the first nodes to one of the second ones."""
    return {(source, target) for source in sources for target in targets if source != target}


def both_ways(left: Collection[int], right: Collection[int]) -> set[tuple[int, int]]:
    """Return every way between one of the first nodes and one of the second ones."""
    return ordered_pairs(left, right) | ordered_pairs(right, left)
