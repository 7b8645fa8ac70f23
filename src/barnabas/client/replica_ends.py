"""Where the logs of single replicas end, also of those that do not lead.

ListOffsets with the replica id of a debugger: any replica answers it with the end of its own log, ours as Apache Kafka's.

Source: Kafka's `ListOffsetsRequest.DEBUGGING_REPLICA_ID`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.offsets import LATEST
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError

_DEBUGGER = -2


class Replica(NamedTuple):
    """The replica of a partition on a broker."""

    at: TopicPartition
    broker: int


def replica_ends(
    cluster: Cluster, replicas: Mapping[TopicPartition, Iterable[int]]
) -> dict[TopicPartition, dict[int, int | KafkaError]]:
    """Return the offset after the last record of each replica.

    Args:
        replicas: by partition the brokers to ask, which must be in service.
    """
    request_class = messages.ListOffsetsRequest

    def ask(connection: BlockingConnection, batch: list[Replica]) -> dict[Replica, int | KafkaError]:
        # A batch is of one broker.
        broker = batch[0].broker
        topics = [
            request_class.ListOffsetsTopic(
                name=name,
                partitions=[
                    request_class.ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes
                ],
            )
            for name, indexes in by_topic(each.at for each in batch).items()
        ]
        request = request_class(replica_id=_DEBUGGER, topics=topics, timeout_ms=cluster.timeout_ms)
        return {
            Replica(TopicPartition(topic.name, found.partition_index), broker): outcome_of(found.error_code)
            or found.offset
            for topic in connection.request(request).topics
            for found in topic.partitions
        }

    wanted = [Replica(at, broker) for at, brokers in replicas.items() for broker in brokers]
    found = cluster.ask_each(wanted, lambda each: {replica: replica.broker for replica in each}, ask)
    ends: dict[TopicPartition, dict[int, int | KafkaError]] = {at: {} for at in replicas}
    for replica, end in found.items():
        ends[replica.at][replica.broker] = end
    return ends
