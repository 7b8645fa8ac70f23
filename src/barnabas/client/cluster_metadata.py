"""The metadata of a cluster: brokers, topics, partitions and their leaders.

Limits: a snapshot of one response, without the authorized operations; `cluster` refreshes it.
Source: MetadataResponse; KIP-516 (topic ids), KIP-112 (offline replicas).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import Uuid


class TopicPartition(NamedTuple):
    """A partition of a topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions as requests want them: each topic with the indexes of its partitions."""
    topics: dict[str, list[int]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each.partition)
    return topics


class Node(NamedTuple):
    """A broker as metadata describes it."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    """One partition; `leader` is -1 if it has none."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]
    error: KafkaError | None = None


_OWN_TOPICS = "__barnabas_"


class TopicMetadata(NamedTuple):
    """One topic with its partitions in order.

    Attributes:
        is_internal: the broker says so, or it is a topic that our own clients keep things in.
    """

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: list[PartitionMetadata]


class ClusterMetadata(NamedTuple):
    """The content of one Metadata response."""

    cluster_id: str | None
    controller_id: int
    brokers: dict[int, Node]
    topics: dict[str, TopicMetadata]
    errors: dict[str, KafkaError]
    """Topics asked for that the broker could not describe."""


def is_internal(name: str, says_broker: bool) -> bool:
    """Return whether a topic is internal: a broker says so, or our own clients keep things in it."""
    return says_broker or name.startswith(_OWN_TOPICS)


def read_metadata(response: messages.MetadataResponse) -> ClusterMetadata:
    """Read a response of any version; topics with an error are in `errors`."""
    brokers = {node.node_id: Node(node.node_id, node.host, node.port, node.rack) for node in response.brokers}
    found: dict[str, TopicMetadata] = {}
    errors: dict[str, KafkaError] = {}
    for topic in response.topics:
        name = topic.name or ""  # a topic asked for by an unknown id has none
        if not topic.error_code:
            partitions = sorted((_read_partition(each) for each in topic.partitions), key=lambda each: each.partition)
            found[name] = TopicMetadata(name, Uuid(topic.topic_id), is_internal(name, topic.is_internal), partitions)
        elif name:
            errors[name] = error_for(topic.error_code)
    return ClusterMetadata(response.cluster_id, response.controller_id, brokers, found, errors)


def _read_partition(partition: messages.MetadataResponse.MetadataResponsePartition) -> PartitionMetadata:
    error = None
    # The partition works although a replica lacks this listener.
    if partition.error_code and partition.error_code != ErrorCode.REPLICA_NOT_AVAILABLE:
        error = error_for(partition.error_code)
    return PartitionMetadata(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        list(partition.replica_nodes),
        list(partition.isr_nodes),
        list(partition.offline_replicas),
        error,
    )
