"""The throttle of replication: a rate of each broker, and the replicas that count towards it.

Settings of Kafka (KIP-73), as `kafka-reassign-partitions --throttle` makes them:

    broker    leader.replication.throttled.rate, follower.replication.throttled.rate            bytes a second
    topic     leader.replication.throttled.replicas, follower.replication.throttled.replicas    PARTITION:BROKER,…
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.brokers import describe_cluster
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.configs import (
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from barnabas.client.outcome import results
from barnabas.client.topics import list_topics
from barnabas.protocol.errors import KafkaError

SIDES = ("leader", "follower")
RATES = tuple(f"{side}.replication.throttled.rate" for side in SIDES)


class Moving(NamedTuple):
    """The brokers that a partition is copied from, and to."""

    sources: list[int]
    targets: list[int]


class Throttle(NamedTuple):
    """The rates and the replicas that count.

    Attributes:
        rates: bytes a second by broker, of the leader's side and of the follower's.
        replicas: of topics, `PARTITION:BROKER,…` or `*`, of the leader's side and of the follower's.
    """

    rates: dict[int, tuple[int | None, int | None]]
    replicas: dict[str, tuple[str, str]]


def describe_throttle(cluster: Cluster) -> Throttle:
    """Return the rates of the brokers that serve, and the topics with throttled replicas."""
    brokers = [ConfigResource(ResourceType.BROKER, str(each.id)) for each in describe_cluster(cluster).brokers]
    topics = [ConfigResource(ResourceType.TOPIC, each.name) for each in list_topics(cluster, internal=True)]
    rates: dict[int, tuple[int | None, int | None]] = {}
    for resource, values in _values(cluster, brokers, "rate").items():
        leader, follower = values
        rates[int(resource.name)] = (int(leader) if leader else None, int(follower) if follower else None)
    replicas: dict[str, tuple[str, str]] = {}
    for resource, (leader, follower) in _values(cluster, topics, "replicas").items():
        if leader or follower:
            replicas[resource.name] = (leader, follower)
    return Throttle(rates, replicas)


def set_throttle(
    cluster: Cluster, rate: int, moves: Mapping[TopicPartition, Moving]
) -> dict[ConfigResource, KafkaError | None]:
    """Throttle the copies of these partitions to bytes a second of each broker, on either side."""
    changes = {
        ConfigResource(ResourceType.BROKER, str(each.id)): [
            ConfigChange(f"{side}.replication.throttled.rate", str(rate)) for side in SIDES
        ]
        for each in describe_cluster(cluster).brokers
    }
    listed: dict[str, tuple[list[str], list[str]]] = {}
    for at, moving in sorted(moves.items()):
        for side, brokers in zip(listed.setdefault(at.topic, ([], [])), moving, strict=True):
            side += [f"{at.partition}:{each}" for each in brokers]
    for topic, sides in listed.items():
        changes[ConfigResource(ResourceType.TOPIC, topic)] = [
            ConfigChange(f"{side}.replication.throttled.replicas", ",".join(entries))
            for side, entries in zip(SIDES, sides, strict=True)
        ]
    return alter_configs(cluster, changes)


def remove_throttle(cluster: Cluster) -> dict[ConfigResource, KafkaError | None]:
    """Remove every rate and every list of throttled replicas; the result names what had one."""
    found = describe_throttle(cluster)
    changes = {
        ConfigResource(ResourceType.BROKER, str(broker)): _removed("rate")
        for broker, rates in found.rates.items()
        if rates != (None, None)
    }
    changes |= {ConfigResource(ResourceType.TOPIC, topic): _removed("replicas") for topic in found.replicas}
    return alter_configs(cluster, changes)


def _removed(what: str) -> list[ConfigChange]:
    return [ConfigChange(f"{side}.replication.throttled.{what}", None, ConfigOperation.DELETE) for side in SIDES]


def _values(cluster: Cluster, resources: Iterable[ConfigResource], what: str) -> dict[ConfigResource, tuple[str, str]]:
    """Return the values of the leader's side and of the follower's that somebody has set."""
    names = [f"{side}.replication.throttled.{what}" for side in SIDES]
    found = results(describe_configs(cluster, resources, names=names))
    values: dict[ConfigResource, tuple[str, str]] = {}
    for resource, entries in found.items():
        given = {each.name: each.value or "" for each in entries if each.source != ConfigSource.DEFAULT_CONFIG}
        values[resource] = (given.get(names[0], ""), given.get(names[1], ""))
    return values
