"""What one node knows, asked at its own address: brokers, partitions, its quorum.

All raise `RetriableError`, or an OSError, when the node does not answer.
"""

from __future__ import annotations

import socket

from barnabas.client.cluster_metadata import ClusterMetadata, read_metadata
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse, MetadataRequest
from tests.cluster.way_in import way_in

ANSWER_MS = 5000

Address = tuple[str, int]
"""Host and port of one listener."""


def takes_connections(address: Address) -> bool:
    """Whether something listens there."""
    with socket.create_connection(address, ANSWER_MS / 1000):
        return True


def metadata(address: Address, *topics: str) -> ClusterMetadata:
    """Return the brokers and, if any are named, the topics that this node knows."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
    )
    with BlockingConnection(*address, timeout_ms=ANSWER_MS, security=way_in.security) as connection:
        return read_metadata(connection.request(request))


def all_topics(address: Address) -> set[str]:
    """Return the names of all topics that this node knows."""
    with BlockingConnection(*address, timeout_ms=ANSWER_MS, security=way_in.security) as connection:
        return set(read_metadata(connection.request(MetadataRequest(topics=None))).topics)


def quorum(address: Address) -> DescribeQuorumResponse.PartitionData | None:
    """Return the state of the metadata log's quorum; None while nobody leads it."""
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    with BlockingConnection(*address, timeout_ms=ANSWER_MS, security=way_in.security) as connection:
        answer: DescribeQuorumResponse = connection.request(DescribeQuorumRequest(topics=[topic]))
    if answer.error_code or not answer.topics:
        return None
    found: DescribeQuorumResponse.PartitionData = answer.topics[0].partitions[0]
    return found if not found.error_code and found.leader_id >= 0 else None
