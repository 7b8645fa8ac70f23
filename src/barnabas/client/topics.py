"""Topics and their partitions: list, describe, create, delete, grow.

Sources: CreateTopics (19), DeleteTopics (20), CreatePartitions (37), Metadata (3); KIP-464 (defaults of -1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicMetadata
from barnabas.client.configs import ConfigResource, ResourceType, describe_configs
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.primitives import ZERO_UUID, Uuid

TOPIC_CREATION = "auto.create.topics.enable"
"""The brokers' setting that says whether they create topics on first use."""
MIN_ISR = "min.insync.replicas"
# As of the topics of groups and transactions (transaction.state.log.replication.factor, transaction.state.log.min.isr).
REPLICAS, _IN_SYNC = 3, 2


@dataclass(frozen=True)
class NewTopic:
    """A topic to create.

    Attributes:
        partitions: -1 takes the broker's default.
        replication_factor: -1 takes the broker's default.
        configs: the settings that differ from the broker's.
        assignments: replicas by partition; replaces `partitions` and `replication_factor`.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


def replicated(name: str, partitions: int, brokers: int, configs: Mapping[str, str | None]) -> NewTopic:
    """Return a topic for a cluster of so many brokers, those that are down included, whatever their defaults are.

    With three brokers, one of them may die: two of three replicas have what is acknowledged.
    """
    replicas = min(brokers, REPLICAS)
    in_sync = _IN_SYNC if replicas == REPLICAS else 1
    return NewTopic(name, partitions, replicas, {**configs, "min.insync.replicas": str(in_sync)})


class CreatedTopic(NamedTuple):
    """A new topic; an old broker leaves -1, a zero id and no settings.

    Attributes:
        configs: its settings, those with a default too; None for a secret.
    """

    name: str
    topic_id: Uuid
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] = {}


def list_topics(cluster: Cluster, *, internal: bool = False) -> list[TopicMetadata]:
    """Return all topics sorted by name."""
    topics = cluster.retry(cluster.metadata).topics.values()
    return sorted((topic for topic in topics if internal or not topic.is_internal), key=lambda topic: topic.name)


def describe_topics(cluster: Cluster, names: Iterable[str]) -> dict[str, TopicMetadata | KafkaError]:
    """Return each topic with its partitions."""

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, TopicMetadata | KafkaError]:
        metadata = cluster.metadata(batch)
        answers: dict[str, TopicMetadata | KafkaError] = {**metadata.topics}
        for name, error in metadata.errors.items():
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                error = error_for(error.code, f"topic {name} does not exist")
            elif error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                error = error_for(error.code, f"{name!r} is not a valid topic name")
            answers[name] = error
        return answers

    return cluster.ask_each(names, cluster.to_any, ask)


def create_topics(
    cluster: Cluster, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> dict[str, CreatedTopic | KafkaError]:
    """Create topics, or only check whether that is possible; return when metadata shows them."""
    by_name = {topic.name: topic for topic in topics}
    request_class = messages.CreateTopicsRequest

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, CreatedTopic | KafkaError]:
        request = request_class(
            topics=[_creatable(by_name[name]) for name in batch],
            timeout_ms=cluster.broker_timeout_ms,
            validate_only=validate_only,
        )
        version = connection.version_for(request)
        if version < 4:
            for topic in request.topics:
                if not topic.assignments and -1 in (topic.num_partitions, topic.replication_factor):
                    return dict.fromkeys(
                        batch,
                        error_for(
                            ErrorCode.UNSUPPORTED_VERSION,
                            "this broker needs the number of partitions and the replication factor",
                        ),
                    )
        response = connection.request(request, version=version)
        return {
            topic.name: outcome_of(topic.error_code, topic.error_message)
            or CreatedTopic(
                topic.name,
                topic.topic_id,
                topic.num_partitions,
                topic.replication_factor,
                {each.name: each.value for each in topic.configs or ()},
            )
            for topic in response.topics
        }

    outcomes = cluster.ask_each(by_name, cluster.to_controller, ask, repeatable=False)
    made = _succeeded(outcomes)
    if made and not validate_only:
        cluster.await_topics(made, lambda metadata: all(name in metadata.topics for name in made))
    return outcomes


def create_if_absent(cluster: Cluster, topic: NewTopic) -> None:
    """Create a topic if it does not exist; return when metadata shows it. One that exists keeps its settings.

    Raises:
        KafkaError: it cannot be created.
    """
    if topic.name in cluster.metadata([topic.name]).topics:
        return
    outcome = create_topics(cluster, [topic])[topic.name]
    if isinstance(outcome, KafkaError) and outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise outcome


def brokers_create_topics(cluster: Cluster) -> bool:
    """Return whether brokers create a topic that a client writes to; True if they do not return the setting."""
    try:
        broker = ConfigResource(ResourceType.BROKER, str(next(iter(cluster.nodes()))))
        entries = result(describe_configs(cluster, [broker], names=[TOPIC_CREATION])[broker])
    except (KafkaError, StopIteration):  # this user may not see it
        return True
    return all(entry.value != "false" for entry in entries if entry.name == TOPIC_CREATION)


def delete_topics(cluster: Cluster, names: Iterable[str]) -> dict[str, Uuid | KafkaError]:
    """Delete topics with all their records; return their ids when metadata shows the topics no longer."""
    request_class = messages.DeleteTopicsRequest

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, Uuid | KafkaError]:
        request = request_class(timeout_ms=cluster.broker_timeout_ms)
        if connection.version_for(request) >= 6:
            request.topics = [request_class.DeleteTopicState(name=name) for name in batch]
        else:
            request.topic_names = batch
        response = connection.request(request)
        answers: dict[str, Uuid | KafkaError] = {}
        for topic in response.responses:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                answers[topic.name] = error_for(topic.error_code, f"topic {topic.name} does not exist")
            else:
                error = outcome_of(topic.error_code, topic.error_message)
                answers[topic.name] = error or Uuid(topic.topic_id or ZERO_UUID)
        return answers

    outcomes = cluster.ask_each(names, cluster.to_controller, ask, repeatable=False)
    gone = _succeeded(outcomes)
    if gone:
        cluster.await_topics(gone, lambda metadata: not any(name in metadata.topics for name in gone))
    return outcomes


def create_partitions(
    cluster: Cluster,
    totals: Mapping[str, int],
    *,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    validate_only: bool = False,
) -> dict[str, int | KafkaError]:
    """Grow topics to a total number of partitions and return it; a topic cannot shrink.

    Args:
        totals: how many partitions each topic has afterwards.
        assignments: the replicas of each new partition, by topic.
    """
    request_class = messages.CreatePartitionsRequest
    assignments = assignments or {}

    def replicas(name: str) -> list[messages.CreatePartitionsRequest.CreatePartitionsAssignment] | None:
        if name not in assignments:
            return None
        return [request_class.CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments[name]]

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, int | KafkaError]:
        request = request_class(
            topics=[
                request_class.CreatePartitionsTopic(name=name, count=totals[name], assignments=replicas(name))
                for name in batch
            ],
            timeout_ms=cluster.broker_timeout_ms,
            validate_only=validate_only,
        )
        return {
            topic.name: outcome_of(topic.error_code, topic.error_message) or totals[topic.name]
            for topic in connection.request(request).results
        }

    outcomes = cluster.ask_each(totals, cluster.to_controller, ask, repeatable=False)
    grown = _succeeded(outcomes)
    if grown and not validate_only:
        cluster.await_topics(
            grown,
            lambda metadata: all(
                name in metadata.topics and len(metadata.topics[name].partitions) >= totals[name] for name in grown
            ),
        )
    return outcomes


def _succeeded(outcomes: Mapping[str, object]) -> list[str]:
    return [name for name, outcome in outcomes.items() if not isinstance(outcome, KafkaError)]


def _creatable(topic: NewTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    request_class = messages.CreateTopicsRequest
    assigned = bool(topic.assignments)
    return request_class.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned else topic.partitions,
        replication_factor=-1 if assigned else topic.replication_factor,
        assignments=[
            request_class.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in topic.assignments.items()
        ],
        configs=[request_class.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
