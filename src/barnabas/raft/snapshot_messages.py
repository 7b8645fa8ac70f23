"""`FetchSnapshot` and its answer as Kafka's messages (API 59), and back.

A message is about one snapshot of the one partition `__cluster_metadata-0`. As with the other requests of the quorum, a message about
another partition, or of another cluster, is rejected at the top level of its answer, and every other error is the partition's.

| message          | first version                                                    |
|------------------|------------------------------------------------------------------|
| FetchSnapshot    | v0 names neither the replica's directory nor the leader's address |

Sources: KIP-630, KIP-853; Kafka's `RaftUtil` and `KafkaRaftClient`.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.raft.answer_messages import NodeAddress
from barnabas.raft.peer_messages import FetchSnapshot, SnapshotPiece
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import PARTITION, TOPIC, Sender, check_cluster, check_partition, not_the_partition
from barnabas.raft.seams import SnapshotId

__all__ = ["piece_message", "read_piece", "read_snapshot_request", "snapshot_request"]

FIRST_ADDRESS_VERSION = 1


def snapshot_request(request: FetchSnapshot, sender: Sender) -> FetchSnapshotRequest:
    """Return Kafka's message of a request."""
    end_offset, epoch = request.snapshot
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=request.epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=end_offset, epoch=epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=sender.cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[FetchSnapshotRequest.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def read_snapshot_request(message: FetchSnapshotRequest, cluster_id: str) -> FetchSnapshot:
    """Return what a peer asks.

    Raises:
        KafkaError: for the top level of the answer: INCONSISTENT_CLUSTER_ID; INVALID_REQUEST if the message is
            not about the one partition.
    """
    check_cluster(message.cluster_id, cluster_id)
    if [topic.name for topic in message.topics] != [TOPIC]:
        raise not_the_partition()
    partitions = message.topics[0].partitions
    check_partition([each.partition for each in partitions])
    asked = partitions[0]
    return FetchSnapshot(
        asked.current_leader_epoch,
        ReplicaKey(message.replica_id, asked.replica_directory_id),
        SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        asked.position,
        message.max_bytes,
    )


def piece_message(piece: SnapshotPiece, version: int, leader: NodeAddress | None = None) -> FetchSnapshotResponse:
    """Return Kafka's message of the answer to a request.

    Args:
        leader: the address of the leader that the answer names, if this node knows it.
    """
    end_offset, epoch = piece.snapshot
    partition = FetchSnapshotResponse.PartitionSnapshot(
        index=PARTITION,
        error_code=piece.error,
        snapshot_id=FetchSnapshotResponse.SnapshotId(end_offset=end_offset, epoch=epoch),
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(leader_id=piece.leader_id, leader_epoch=piece.epoch),
        size=piece.size,
        position=piece.position,
        unaligned_records=piece.data,
    )
    answer = FetchSnapshotResponse(topics=[FetchSnapshotResponse.TopicSnapshot(name=TOPIC, partitions=[partition])])
    if leader is not None and leader.id == piece.leader_id and version >= FIRST_ADDRESS_VERSION:
        named = FetchSnapshotResponse.NodeEndpoint(node_id=leader.id, host=leader.host, port=leader.port)
        answer.node_endpoints = [named]
    return answer


def read_piece(message: FetchSnapshotResponse) -> SnapshotPiece:
    """Return what a peer answers.

    Raises:
        KafkaError: the peer rejected the request, or its answer is not about the one partition.
    """
    if message.error_code != ErrorCode.NONE:
        raise KafkaError(known_code(message.error_code))
    if [topic.name for topic in message.topics] != [TOPIC]:
        raise not_the_partition()
    check_partition([each.index for each in message.topics[0].partitions])
    answered = message.topics[0].partitions[0]
    data = answered.unaligned_records or b""
    assert isinstance(data, bytes | bytearray | memoryview), "records that were received are in memory"
    return SnapshotPiece(
        answered.current_leader.leader_epoch,
        answered.current_leader.leader_id,
        SnapshotId(answered.snapshot_id.end_offset, answered.snapshot_id.epoch),
        answered.size,
        answered.position,
        data,
        known_code(answered.error_code),
    )
