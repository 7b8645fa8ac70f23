"""The requests of `peer_messages` as Kafka's messages, and back: Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch of the metadata log.

A message is about the one partition `__cluster_metadata-0`. A message about another partition, or of another cluster, is rejected at the
top level of its answer; every other error is the partition's, and `RaftNode` finds it. A field that a version lacks has its default when it
is read:

| message          | first versions                                                                                       |
|------------------|------------------------------------------------------------------------------------------------------|
| Vote             | v0 names no directories and no voter; v0 and v1 have no pre-vote, so writing one fails               |
| BeginQuorumEpoch | v0 names no directories, no voter and no endpoints                                                   |
| EndQuorumEpoch   | v0 names the successors without their directories                                                    |
| Fetch            | v12 names the topic, v13 its id; the replica is in its state from v15, its directory from v17;       |
|                  | its high watermark from v18: before that it counts as the highest, so that it never ends a wait      |

Sources: Kafka's `RaftUtil` and `KafkaRaftClient`; KIP-595, KIP-853, KIP-996, KIP-1166 (the high watermark of Fetch).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    VoteRequest,
)
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID
from barnabas.raft.local_log import MAX_FETCH_BYTES
from barnabas.raft.peer_messages import BeginEpoch, EndEpoch, FetchFrom, LogEnd, Request, Vote
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voters import VoterEndpoint

__all__ = [
    "FIRST_TOPIC_ID_VERSION",
    "PARTITION",
    "TOPIC",
    "TOPIC_ID",
    "PeerRequest",
    "Sender",
    "read_request",
    "request_message",
]

TOPIC = "__cluster_metadata"
TOPIC_ID = ONE_UUID
PARTITION = 0

FIRST_TOPIC_ID_VERSION = 13
FIRST_REPLICA_STATE_VERSION = 15

PeerRequest = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest


class Sender(NamedTuple):
    """The sender's part of a request.

    Attributes: `endpoints` are those at which it serves the quorum; a new leader names them.
    """

    cluster_id: str
    endpoints: tuple[VoterEndpoint, ...] = ()


def request_message(request: Request, version: int, sender: Sender) -> PeerRequest:
    """Return Kafka's message of a request, as the given version of it carries it."""
    match request:
        case Vote():
            return _vote(request, sender)
        case BeginEpoch():
            return _begin_epoch(request, sender)
        case EndEpoch():
            return _end_epoch(request, version, sender)
        case FetchFrom():
            return _fetch(request, version, sender)


def _vote(request: Vote, sender: Sender) -> VoteRequest:
    partition = VoteRequest.PartitionData(
        partition_index=PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.log_end.epoch,
        last_offset=request.log_end.end_offset,
        pre_vote=request.pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=sender.cluster_id, voter_id=request.voter.id, topics=[topic])


def _begin_epoch(request: BeginEpoch, sender: Sender) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequest.PartitionData(
        partition_index=PARTITION,
        voter_directory_id=request.voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=sender.cluster_id,
        voter_id=request.voter.id,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            BeginQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in request.endpoints or sender.endpoints
        ],
    )


def _end_epoch(request: EndEpoch, version: int, sender: Sender) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequest.PartitionData(
        partition_index=PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    if version == 0:
        partition.preferred_successors = [each.id for each in request.preferred]
    else:
        partition.preferred_candidates = [
            EndQuorumEpochRequest.ReplicaInfo(candidate_id=each.id, candidate_directory_id=each.directory_id)
            for each in request.preferred
        ]
    message = EndQuorumEpochRequest(
        cluster_id=sender.cluster_id,
        topics=[EndQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[partition])],
    )
    if version > 0:
        message.leader_endpoints = [
            EndQuorumEpochRequest.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in sender.endpoints
        ]
    return message


def _fetch(request: FetchFrom, version: int, sender: Sender) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_fetched_epoch,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    message = FetchRequest(
        cluster_id=sender.cluster_id,
        max_wait_ms=request.max_wait_ms,
        max_bytes=MAX_FETCH_BYTES,
        topics=[FetchRequest.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )
    if version < FIRST_REPLICA_STATE_VERSION:
        message.replica_id = request.replica.id
    else:
        message.replica_state = FetchRequest.ReplicaState(replica_id=request.replica.id)
    return message


def read_request(message: PeerRequest, version: int, cluster_id: str) -> Request:
    """Return what a peer asks.

    Raises:
        KafkaError: for the top level of the answer, see `answer_messages.rejection`: INCONSISTENT_CLUSTER_ID; INVALID_REQUEST if the
            message is not about the one partition.
    """
    check_cluster(message.cluster_id, cluster_id)
    if isinstance(message, FetchRequest):
        return _read_fetch(message, version)
    if [topic.topic_name for topic in message.topics] != [TOPIC]:
        raise not_the_partition()
    match message:
        case VoteRequest():
            return _read_vote(message)
        case BeginQuorumEpochRequest():
            return _read_begin_epoch(message)
        case EndQuorumEpochRequest():
            return _read_end_epoch(message, version)


def check_cluster(named: str | None, cluster_id: str) -> None:
    """Raise INCONSISTENT_CLUSTER_ID if a request names another cluster."""
    if named is not None and named != cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"the request is for cluster {named}, not {cluster_id}")


def not_the_partition() -> KafkaError:
    """Return the error of a message that is about more, less or something else than the metadata partition."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"the message is not about partition {PARTITION} of {TOPIC} alone")


def check_partition(indexes: Sequence[int]) -> None:
    """Raise INVALID_REQUEST if these are other partitions than the one."""
    if indexes != [PARTITION]:
        raise not_the_partition()


def _read_vote(message: VoteRequest) -> Vote:
    partitions = message.topics[0].partitions
    check_partition([each.partition_index for each in partitions])
    asked = partitions[0]
    return Vote(
        asked.replica_epoch,
        ReplicaKey(asked.replica_id, asked.replica_directory_id),
        ReplicaKey(message.voter_id, asked.voter_directory_id),
        LogEnd(asked.last_offset_epoch, asked.last_offset),
        asked.pre_vote,
    )


def _read_begin_epoch(message: BeginQuorumEpochRequest) -> BeginEpoch:
    partitions = message.topics[0].partitions
    check_partition([each.partition_index for each in partitions])
    begun = partitions[0]
    endpoints = tuple(VoterEndpoint(each.name, each.host, each.port) for each in message.leader_endpoints)
    voter = ReplicaKey(message.voter_id, begun.voter_directory_id)
    return BeginEpoch(begun.leader_epoch, begun.leader_id, voter, endpoints)


def _read_end_epoch(message: EndQuorumEpochRequest, version: int) -> EndEpoch:
    partitions = message.topics[0].partitions
    check_partition([each.partition_index for each in partitions])
    ended = partitions[0]
    if version == 0:
        preferred = tuple(ReplicaKey(each, ZERO_UUID) for each in ended.preferred_successors)
    else:
        preferred = tuple(
            ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in ended.preferred_candidates
        )
    return EndEpoch(ended.leader_epoch, ended.leader_id, preferred)


def _read_fetch(message: FetchRequest, version: int) -> FetchFrom:
    named = [each.topic_id if version >= FIRST_TOPIC_ID_VERSION else each.topic for each in message.topics]
    if named not in ([TOPIC], [TOPIC_ID]):
        raise not_the_partition()
    partitions = message.topics[0].partitions
    check_partition([each.partition for each in partitions])
    asked = partitions[0]
    has_state = version >= FIRST_REPLICA_STATE_VERSION
    replica_id = message.replica_state.replica_id if has_state else message.replica_id
    return FetchFrom(
        asked.current_leader_epoch,
        ReplicaKey(replica_id, asked.replica_directory_id),
        asked.fetch_offset,
        asked.last_fetched_epoch,
        asked.high_watermark,
        message.max_wait_ms,
    )
