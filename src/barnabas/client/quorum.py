"""The quorum of controllers behind `__cluster_metadata`.

Sources: DescribeQuorum (55); KIP-595, KIP-836.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.protocol import messages
from barnabas.protocol.errors import error_for


class QuorumReplica(NamedTuple):
    """A replica of the metadata log."""

    id: int
    log_end_offset: int
    is_voter: bool


class Quorum(NamedTuple):
    """The quorum; `leader` is -1 while the voters elect one."""

    leader: int
    leader_epoch: int
    high_watermark: int
    replicas: list[QuorumReplica]


def describe_quorum(cluster: Cluster) -> Quorum:
    """Return the leader of the metadata log and how far its replicas are."""
    request_class = messages.DescribeQuorumRequest
    partition = request_class.PartitionData(partition_index=0)
    topic = request_class.TopicData(topic_name="__cluster_metadata", partitions=[partition])

    def ask() -> Quorum:
        response = cluster.any_connection().request(request_class(topics=[topic]))
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise error_for(found.error_code, found.error_message)
        replicas = [QuorumReplica(each.replica_id, each.log_end_offset, True) for each in found.current_voters]
        replicas += [QuorumReplica(each.replica_id, each.log_end_offset, False) for each in found.observers]
        return Quorum(found.leader_id, found.leader_epoch, found.high_watermark, sorted(replicas))

    return cluster.retry(ask)
