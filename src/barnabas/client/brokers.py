"""Brokers: the cluster they form, their log directories, the producers they know. Shell plane; a part of Admin.

Sources: DescribeCluster (60), DescribeLogDirs (35), DescribeProducers (61); KIP-113, KIP-664, KIP-700, KIP-827.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.cluster_metadata import Node, TopicPartition
from barnabas.client.outcome import AdminPart, outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import KafkaError, error_for


class ClusterDescription(NamedTuple):
    """Who belongs to the cluster and which broker takes administrative changes (-1: none now)."""

    cluster_id: str | None
    controller_id: int
    brokers: list[Node]


class ReplicaSize(NamedTuple):
    """A replica in a log directory, in bytes; ``offset_lag`` is how far it is behind."""

    partition: TopicPartition
    size_in_bytes: int
    offset_lag: int
    is_future: bool


class LogDir(NamedTuple):
    """A log directory; its total and usable bytes are -1 where the broker is too old to tell."""

    path: str
    error: KafkaError | None
    replicas: list[ReplicaSize]
    total_bytes: int
    usable_bytes: int


class ProducerState(NamedTuple):
    """A producer that wrote to a partition; the transaction's start offset is -1 outside of one."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


class BrokerAdmin(AdminPart):
    """Brokers."""

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers."""

        def ask() -> ClusterDescription:
            connection = self.cluster.any_connection()
            if not connection.supports(ApiKey.DESCRIBE_CLUSTER):
                metadata = self.cluster.metadata(topics=[])
                return ClusterDescription(
                    metadata.cluster_id, metadata.controller_id, sorted(metadata.brokers.values())
                )
            response = connection.request(messages.DescribeClusterRequest())
            if response.error_code:
                raise error_for(response.error_code, response.error_message)
            brokers = sorted(Node(each.broker_id, each.host, each.port, each.rack) for each in response.brokers)
            return ClusterDescription(response.cluster_id, response.controller_id, brokers)

        return self.cluster.retry(ask)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDir] | KafkaError]:
        """Each broker's log directories with the replicas in them.

        Args:
            broker_ids: None for every broker.
            partitions: only these; None for all.
        """
        request_class = messages.DescribeLogDirsRequest
        topics: dict[str, list[int]] | None = None
        if partitions is not None:
            topics = {}
            for each in partitions:
                topics.setdefault(each.topic, []).append(each.partition)

        def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, list[LogDir] | KafkaError]:
            request = request_class(
                topics=None
                if topics is None
                else [
                    request_class.DescribableLogDirTopic(topic=name, partitions=indexes)
                    for name, indexes in topics.items()
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
                )
                for each in response.results
            ]
            (node_id,) = batch
            return {node_id: outcome_of(response.error_code) or found}

        wanted = list(self.cluster.retry(self.cluster.nodes)) if broker_ids is None else list(broker_ids)
        return self.cluster.ask_each(wanted, lambda nodes: {node: node for node in nodes}, ask)

    def describe_producers(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
        """The idempotent and transactional producers each partition's leader remembers."""
        request_class = messages.DescribeProducersRequest

        def ask(
            connection: BlockingConnection, batch: list[TopicPartition]
        ) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
            topics: dict[str, list[int]] = {}
            for each in batch:
                topics.setdefault(each.topic, []).append(each.partition)
            request = request_class(
                topics=[
                    request_class.TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics.items()
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

        return self.cluster.ask_each(partitions, self.cluster.leaders, ask)
