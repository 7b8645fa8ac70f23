"""Elections of leaders that a client asks for.

Sources: ElectLeaders (43); KIP-183, KIP-460.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

_PREFERRED, _UNCLEAN = 0, 1


def elect_preferred_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Make the first replica of each partition its leader; None for each that is led by it now.

    It is PREFERRED_LEADER_NOT_AVAILABLE if that replica is not in sync.
    """
    return _elect(cluster, partitions, _PREFERRED)


def elect_unclean_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, KafkaError | None]:
    """Give each partition without a leader any replica that can lead, which may lack records; None for each that has a leader now.

    It is ELIGIBLE_LEADERS_NOT_AVAILABLE if no replica is in service.
    """
    return _elect(cluster, partitions, _UNCLEAN)


def _elect(
    cluster: Cluster, partitions: Iterable[TopicPartition], election_type: int
) -> dict[TopicPartition, KafkaError | None]:
    request_class = messages.ElectLeadersRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        topics = [
            request_class.TopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic(batch).items()
        ]
        response = connection.request(
            request_class(election_type=election_type, topic_partitions=topics, timeout_ms=cluster.broker_timeout_ms)
        )
        if response.error_code:
            raise error_for(response.error_code)
        return {
            TopicPartition(topic.topic, each.partition_id): None
            if each.error_code == ErrorCode.ELECTION_NOT_NEEDED
            else outcome_of(each.error_code, each.error_message)
            for topic in response.replica_election_results
            for each in topic.partition_result
        }

    return cluster.ask_each(partitions, cluster.to_controller, ask)
