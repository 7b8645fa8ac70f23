"""Requests of the quorum as Kafka's messages: what comes back is what was sent, and Kafka builds the same."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError
from barnabas.protocol.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest, VoteRequest
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID
from barnabas.raft.peer_messages import BeginEpoch, EndEpoch, FetchFrom, LogEnd, Request, Vote
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import PeerRequest, Sender, read_request, request_message
from barnabas.raft.voters import VoterEndpoint
from tests.raft.peer_message_strategies import begun, ended, fetches, votes

CLUSTER = "h3p9Kx-TQ3OqgKQkXVdIew"
SENDER = Sender(CLUSTER, (VoterEndpoint("CONTROLLER", "one.example", 9093),))
ONE, TWO, THREE = (ReplicaKey(n, bytes([n]) * 16) for n in (1, 2, 3))
HIGHEST = 2**63 - 1


def carried(request: Request, version: int) -> Request:
    """A request as it is read out of the bytes of a version."""
    message = request_message(request, version, SENDER)
    data = message.encode(version)
    return read_request(type(message).decode(data, version), version, CLUSTER)


@given(votes, st.integers(0, 2))
def test_a_vote_comes_back(vote: Vote, version: int) -> None:
    if version < 2:
        vote = vote._replace(pre_vote=False)
    expected = vote
    if version < 1:
        expected = vote._replace(candidate=ReplicaKey(vote.candidate.id), voter=ReplicaKey(-1))
    assert carried(vote, version) == expected


@pytest.mark.parametrize("version", [0, 1])
def test_a_pre_vote_is_never_sent_as_a_vote(version: int) -> None:
    with pytest.raises(EncodeError):
        carried(Vote(4, ONE, TWO, LogEnd(3, 9), pre_vote=True), version)


@given(begun, st.integers(0, 1))
def test_the_begin_of_an_epoch_comes_back(request: BeginEpoch, version: int) -> None:
    expected = request._replace(endpoints=SENDER.endpoints) if version else request._replace(voter=ReplicaKey(-1))
    assert carried(request, version) == expected


@given(ended, st.integers(0, 1))
def test_the_end_of_an_epoch_comes_back(request: EndEpoch, version: int) -> None:
    expected = request
    if version == 0:
        expected = request._replace(preferred=tuple(ReplicaKey(each.id) for each in request.preferred))
    assert carried(request, version) == expected


@given(fetches, st.integers(12, 18))
def test_a_fetch_comes_back(request: FetchFrom, version: int) -> None:
    expected = request
    if version < 17:
        expected = expected._replace(replica=ReplicaKey(request.replica.id))
    if version < 18:
        expected = expected._replace(high_watermark=HIGHEST)
    assert carried(request, version) == expected


# What Kafka's RaftUtil builds. Fields that are not named have Kafka's defaults there and here.


def test_kafka_builds_the_same_vote() -> None:
    partition = VoteRequest.PartitionData(
        partition_index=0,
        replica_epoch=5,
        replica_id=1,
        replica_directory_id=ONE.directory_id,
        voter_directory_id=TWO.directory_id,
        last_offset_epoch=4,
        last_offset=17,
        pre_vote=True,
    )
    topic = VoteRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    vote = request_message(Vote(5, ONE, TWO, LogEnd(4, 17), pre_vote=True), 2, SENDER)
    assert vote == VoteRequest(cluster_id=CLUSTER, voter_id=2, topics=[topic])
    assert vote.encode(2) == b"".join(
        [
            b"\x17" + CLUSTER.encode(),
            struct.pack(">i", 2),
            b"\x02\x13__cluster_metadata\x02",
            struct.pack(">iii", 0, 5, 1) + ONE.directory_id + TWO.directory_id,
            struct.pack(">iq?", 4, 17, True),
            b"\x00\x00\x00",  # No tagged fields: of the partition, of the topic, of the message.
        ]
    )


def test_kafka_builds_the_same_begin_of_an_epoch() -> None:
    partition = BeginQuorumEpochRequest.PartitionData(
        partition_index=0, voter_directory_id=TWO.directory_id, leader_id=1, leader_epoch=5
    )
    message = request_message(BeginEpoch(5, 1, TWO), 1, SENDER)
    assert message == BeginQuorumEpochRequest(
        cluster_id=CLUSTER,
        voter_id=2,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])],
        leader_endpoints=[
            BeginQuorumEpochRequest.LeaderEndpoint(name="CONTROLLER", host="one.example", port=9093),
        ],
    )


def test_kafka_builds_the_same_end_of_an_epoch() -> None:
    successors = [
        EndQuorumEpochRequest.ReplicaInfo(candidate_id=3, candidate_directory_id=THREE.directory_id),
        EndQuorumEpochRequest.ReplicaInfo(candidate_id=2, candidate_directory_id=TWO.directory_id),
    ]
    partition = EndQuorumEpochRequest.PartitionData(
        partition_index=0, leader_id=1, leader_epoch=5, preferred_candidates=successors
    )
    assert request_message(EndEpoch(5, 1, (THREE, TWO)), 1, SENDER) == EndQuorumEpochRequest(
        cluster_id=CLUSTER,
        topics=[EndQuorumEpochRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])],
        leader_endpoints=[EndQuorumEpochRequest.LeaderEndpoint(name="CONTROLLER", host="one.example", port=9093)],
    )


def test_kafka_builds_the_same_fetch() -> None:
    partition = FetchRequest.FetchPartition(
        partition=0,
        current_leader_epoch=5,
        fetch_offset=17,
        last_fetched_epoch=4,
        replica_directory_id=TWO.directory_id,
        high_watermark=16,
    )
    topic = FetchRequest.FetchTopic(topic="__cluster_metadata", topic_id=ONE_UUID, partitions=[partition])
    assert request_message(FetchFrom(5, TWO, 17, 4, 16), 18, SENDER) == FetchRequest(
        cluster_id=CLUSTER,
        replica_state=FetchRequest.ReplicaState(replica_id=2),
        max_wait_ms=500,
        min_bytes=0,
        max_bytes=8 * 1024 * 1024,
        session_id=0,
        session_epoch=-1,
        topics=[topic],
    )


# What a node rejects before it looks at the partition


def messages() -> list[PeerRequest]:
    asked = [Vote(5, ONE, TWO, LogEnd(4, 17)), BeginEpoch(5, 1, TWO), EndEpoch(5, 1), FetchFrom(5, TWO, 17, 4)]
    return [request_message(each, 1, SENDER) for each in asked]  # type: ignore[arg-type]


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.NAME)
def test_another_cluster_is_rejected(message: PeerRequest) -> None:
    with pytest.raises(KafkaError) as raised:
        read_request(message, 18, "another")
    assert raised.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.NAME)
def test_a_request_without_a_cluster_is_taken(message: PeerRequest) -> None:
    message.cluster_id = None
    read_request(message, 18, CLUSTER)


@pytest.mark.parametrize("what", ["no topic", "topic", "topics", "partition", "partitions", "no partition"])
@pytest.mark.parametrize("place", range(4))
def test_another_partition_is_rejected(place: int, what: str) -> None:
    message = messages()[place]
    message.cluster_id = CLUSTER
    topic = message.topics[0]
    match what:
        case "no topic":
            message.topics = []
        case "topic":
            if isinstance(topic, FetchRequest.FetchTopic):
                topic.topic_id = ZERO_UUID
            else:
                topic.topic_name = "orders"
        case "topics":
            message.topics = [topic, topic]  # type: ignore[assignment, list-item]
        case "partition":
            partition = topic.partitions[0]
            if isinstance(partition, FetchRequest.FetchPartition):
                partition.partition = 1
            else:
                partition.partition_index = 1
        case "partitions":
            topic.partitions = topic.partitions * 2  # type: ignore[assignment, operator]
        case "no partition":
            topic.partitions = []
    with pytest.raises(KafkaError) as raised:
        read_request(message, 18, CLUSTER)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
