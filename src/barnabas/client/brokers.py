"""Brokers: the cluster they form, their log directories, the producers they know.

Sources: DescribeCluster (60), DescribeLogDirs (35), DescribeProducers (61), UnregisterBroker (64); KIP-113, KIP-631, KIP-664, KIP-700,
KIP-827.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import Node, TopicPartition, by_topic
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import KafkaError, error_for


class ClusterDescription(NamedTuple):
    """The cluster.

    Attributes:
        controller_id: the broker that takes administrative changes; -1 while the cluster has no controller.
        brokers: those that serve.
        fenced: registered and not serving; empty if the broker is too old for the field.
    """

    cluster_id: str | None
    controller_id: int
    brokers: list[Node]
    fenced: list[Node]


class ReplicaSize(NamedTuple):
    """A replica in a log directory; `offset_lag` is how many offsets it is behind."""

    partition: TopicPartition
    size_in_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    """A log directory; an old broker leaves -1 for its total and usable bytes, and says of none that it gets no new replica."""

    path: str
    error: KafkaError | None
    replicas: list[ReplicaSize]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool = False


class ProducerState(NamedTuple):
    """A producer that wrote to a partition; the start offset is -1 if it has no open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


def describe_cluster(cluster: Cluster) -> ClusterDescription:
    """Return the cluster's id, controller and brokers."""

    def ask() -> ClusterDescription:
        connection = cluster.any_connection()
        if not connection.supports(ApiKey.DESCRIBE_CLUSTER):
            metadata = cluster.metadata(topics=[])
            return ClusterDescription(
                metadata.cluster_id, metadata.controller_id, sorted(metadata.brokers.values()), []
            )
        tells_fenced = connection.supports(ApiKey.DESCRIBE_CLUSTER, 2)
        response = connection.request(messages.DescribeClusterRequest(include_fenced_brokers=tells_fenced))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        found = sorted(
            (each.is_fenced, Node(each.broker_id, each.host, each.port, each.rack)) for each in response.brokers
        )
        brokers = [node for is_fenced, node in found if not is_fenced]
        fenced = [node for is_fenced, node in found if is_fenced]
        return ClusterDescription(response.cluster_id, response.controller_id, brokers, fenced)

    return cluster.retry(ask)


def describe_log_dirs(
    cluster: Cluster, broker_ids: Iterable[int] | None = None, partitions: Iterable[TopicPartition] | None = None
) -> dict[int, list[LogDir] | KafkaError]:
    """Return each broker's log directories with the replicas in them.

    Args:
        broker_ids: None for every broker.
        partitions: only these; None for all.
    """
    request_class = messages.DescribeLogDirsRequest
    topics = None if partitions is None else by_topic(partitions)

    def ask(connection: BlockingConnection, node_id: int) -> list[LogDir] | KafkaError:
        request = request_class(
            topics=None
            if topics is None
            else [
                request_class.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()
            ]
        )
        response = connection.request(request)
        found = [
            LogDir(
                each.log_dir,
                outcome_of(each.error_code),
                sorted(
                    ReplicaSize(
                        TopicPartition(topic.name, replica.partition_index),
                        replica.partition_size,
                        replica.offset_lag,
                        replica.is_future_key,
                    )
                    for topic in each.topics
                    for replica in topic.partitions
                ),
                each.total_bytes,
                each.usable_bytes,
                each.is_cordoned,
            )
            for each in response.results
        ]
        return outcome_of(response.error_code) or found

    return cluster.ask_nodes(ask, broker_ids)


def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
    """Return the idempotent and transactional producers that each partition's leader remembers."""
    request_class = messages.DescribeProducersRequest

    def ask(
        connection: BlockingConnection, batch: list[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
        request = request_class(
            topics=[
                request_class.TopicRequest(name=name, partition_indexes=indexes)
                for name, indexes in by_topic(batch).items()
            ]
        )
        answers: dict[TopicPartition, list[ProducerState] | KafkaError] = {}
        for topic in connection.request(request).topics:
            for found in topic.partitions:
                error = outcome_of(found.error_code, found.error_message)
                answers[TopicPartition(topic.name, found.partition_index)] = error or [
                    ProducerState(
                        each.producer_id,
                        each.producer_epoch,
                        each.last_sequence,
                        each.last_timestamp,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                    )
                    for each in found.active_producers
                ]
        return answers

    return cluster.ask_each(partitions, cluster.leaders, ask)


def unregister_broker(cluster: Cluster, broker_id: int) -> KafkaError | None:
    """Remove a broker that is gone for good from the cluster's metadata; return when a broker shows it, or the error if there is one.

    The controller asks neither whether the broker serves nor whether it holds replicas: the caller does. A broker that starts again
    registers again.
    """

    def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, KafkaError | None]:
        answers = {each: connection.request(messages.UnregisterBrokerRequest(broker_id=each)) for each in batch}
        return {each: outcome_of(answer.error_code, answer.error_message) for each, answer in answers.items()}

    error = cluster.ask_each([broker_id], cluster.to_controller, ask, repeatable=False)[broker_id]
    if error is None:
        cluster.await_change(lambda: broker_id not in [node.id for node in describe_cluster(cluster).fenced])
    return error
