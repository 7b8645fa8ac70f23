"""DescribeQuorum: the leader of the metadata quorum, and the progress of each voter.

Directory ids and the voters' listeners exist from version 2 on; in lower versions the fields must stay empty.

Sources: KIP-595, KIP-836, KIP-853; Kafka's `KafkaRaftClient.handleDescribeQuorumRequest`.
"""

from __future__ import annotations

from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.protocol.topic_names import CLUSTER_METADATA
from barnabas.raft.leader import Leader, ReplicaProgress
from barnabas.raft.voters import VoterSet

LISTENERS_FROM = 2


def describe_quorum(
    view: ControllerView, request: messages.DescribeQuorumRequest
) -> ControllerResult[messages.DescribeQuorumResponse]:
    """Answer one DescribeQuorum request; only partition 0 of `__cluster_metadata` has a quorum."""
    response = messages.DescribeQuorumResponse()
    for topic in request.topics:
        partitions = [
            _partition(view, p.partition_index)
            if topic.topic_name == CLUSTER_METADATA and p.partition_index == 0
            else messages.DescribeQuorumResponse.PartitionData(
                partition_index=p.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message="This server does not host this topic-partition.",
            )
            for p in topic.partitions
        ]
        answer = messages.DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=partitions)
        response.topics.append(answer)
    is_answered = any(p.error_code == ErrorCode.NONE for topic in response.topics for p in topic.partitions)
    if view.version >= LISTENERS_FROM and is_answered:
        response.nodes = _nodes(view.quorum.voters)
    return ControllerResult(response)


def _partition(view: ControllerView, index: int) -> messages.DescribeQuorumResponse.PartitionData:
    leader = view.quorum.quorum.state
    assert isinstance(leader, Leader), "only the active controller answers"
    description = leader.describe(view.clock)
    return messages.DescribeQuorumResponse.PartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=description.leader_id,
        leader_epoch=description.leader_epoch,
        high_watermark=description.high_watermark,
        current_voters=[_replica(progress, view.version) for progress in description.voters],
        observers=[_replica(progress, view.version) for progress in description.observers],
    )


def _replica(progress: ReplicaProgress, version: int) -> messages.DescribeQuorumResponse.ReplicaState:
    return messages.DescribeQuorumResponse.ReplicaState(
        replica_id=progress.id,
        replica_directory_id=progress.directory_id if version >= LISTENERS_FROM else ZERO_UUID,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _nodes(voters: VoterSet) -> list[messages.DescribeQuorumResponse.Node]:
    return [
        messages.DescribeQuorumResponse.Node(
            node_id=voter.id,
            listeners=[
                messages.DescribeQuorumResponse.Listener(name=e.name, host=e.host, port=e.port) for e in voter.endpoints
            ],
        )
        for voter in voters.voters
    ]
