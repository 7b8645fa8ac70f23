"""Answers of the quorum as Kafka's messages: what comes back is what was sent, and Kafka builds the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FetchResponse,
    VoteResponse,
)
from barnabas.protocol.primitives import ONE_UUID
from barnabas.raft.answer_messages import (
    NodeAddress,
    PeerResponse,
    answer_message,
    node_addresses,
    read_answer,
    rejection,
)
from barnabas.raft.peer_messages import (
    Answer,
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    LogEnd,
    Request,
    Vote,
    VoteAnswer,
)
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import Sender, request_message
from barnabas.raft.seams import SnapshotId
from barnabas.records.builder import build_batch
from barnabas.records.errors import CorruptRecord
from tests.raft.peer_message_strategies import epoch_answers, fetched, vote_answers

ONE, TWO = (ReplicaKey(n, bytes([n]) * 16) for n in (1, 2))
VOTE = Vote(5, ONE, TWO, LogEnd(4, 17))
BEGIN, END, FETCH = BeginEpoch(5, 1, TWO), EndEpoch(5, 1), FetchFrom(5, TWO, 17, 4)
LEADER = NodeAddress(1, "one.example", 9093)


def carried(request: Request, answer: Answer, version: int, leader: NodeAddress | None = None) -> PeerResponse:
    message = answer_message(request, answer, version, leader)
    return type(message).decode(message.encode(version), version)


@given(vote_answers, st.integers(0, 2))
def test_the_answer_to_a_vote_comes_back(answer: VoteAnswer, version: int) -> None:
    assert read_answer(carried(VOTE, answer, version), version) == answer


@given(epoch_answers, st.sampled_from([BEGIN, END]), st.integers(0, 1))
def test_the_answer_to_a_leader_comes_back(answer: EpochAnswer, request: BeginEpoch | EndEpoch, version: int) -> None:
    assert read_answer(carried(request, answer, version), version) == answer


@given(fetched, st.integers(12, 18))
def test_the_answer_to_a_fetch_comes_back(answer: Fetched, version: int) -> None:
    assert read_answer(carried(FETCH, answer, version), version) == answer


@pytest.mark.parametrize(
    ("request_", "answer", "versions", "first"),
    [
        (VOTE, VoteAnswer(5, 1), range(3), 1),
        (BEGIN, EpochAnswer(5, 1), range(2), 1),
        (END, EpochAnswer(5, 1), range(2), 1),
        (FETCH, Fetched(5, 1), range(12, 19), 17),
    ],
)
def test_an_answer_names_the_address_of_the_leader(
    request_: Request, answer: Answer, versions: range, first: int
) -> None:
    for version in versions:
        message = carried(request_, answer, version, LEADER)
        assert node_addresses(message) == ((LEADER,) if version >= first else ())
        assert node_addresses(carried(request_, answer, version)) == ()


def test_the_address_of_another_node_is_not_named() -> None:
    assert node_addresses(carried(VOTE, VoteAnswer(5, 2), 2, LEADER)) == ()
    assert node_addresses(carried(VOTE, VoteAnswer(5), 2, LEADER)) == ()


# What Kafka's RaftUtil builds. Fields that are not named have Kafka's defaults there and here.


def test_kafka_builds_the_same_answer_to_a_vote() -> None:
    partition = VoteResponse.PartitionData(
        partition_index=0, error_code=125, leader_id=1, leader_epoch=5, vote_granted=False
    )
    assert answer_message(VOTE, VoteAnswer(5, 1, error=ErrorCode.INVALID_VOTER_KEY), 2, LEADER) == VoteResponse(
        error_code=0,
        topics=[VoteResponse.TopicData(topic_name="__cluster_metadata", partitions=[partition])],
        node_endpoints=[VoteResponse.NodeEndpoint(node_id=1, host="one.example", port=9093)],
    )


def test_kafka_builds_the_same_answers_to_a_leader() -> None:
    fenced = EpochAnswer(5, -1, ErrorCode.FENCED_LEADER_EPOCH)
    begun = BeginQuorumEpochResponse.PartitionData(partition_index=0, error_code=74, leader_id=-1, leader_epoch=5)
    assert answer_message(BEGIN, fenced, 1, LEADER) == BeginQuorumEpochResponse(
        topics=[BeginQuorumEpochResponse.TopicData(topic_name="__cluster_metadata", partitions=[begun])]
    )
    ended = EndQuorumEpochResponse.PartitionData(partition_index=0, error_code=74, leader_id=-1, leader_epoch=5)
    assert answer_message(END, fenced, 1, LEADER) == EndQuorumEpochResponse(
        topics=[EndQuorumEpochResponse.TopicData(topic_name="__cluster_metadata", partitions=[ended])]
    )


def fetch_response(**fields: object) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        partition_index=0,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=5),
        aborted_transactions=[],
        preferred_read_replica=-1,
        last_stable_offset=-1,
        **fields,  # type: ignore[arg-type]
    )
    topic = FetchResponse.FetchableTopicResponse(topic="__cluster_metadata", topic_id=ONE_UUID, partitions=[partition])
    return FetchResponse(error_code=0, session_id=0, responses=[topic])


def test_kafka_builds_the_same_answers_to_a_fetch() -> None:
    batch = build_batch([(0, None, b"v", ())], base_offset=17, leader_epoch=5)
    assert answer_message(FETCH, Fetched(5, 1, 16, 3, batches=(batch,)), 16, LEADER) == fetch_response(
        high_watermark=16, log_start_offset=3, records=batch
    )
    assert answer_message(FETCH, Fetched(5, 1, 16, 3, diverging=LogEnd(4, 15)), 18) == fetch_response(
        high_watermark=16,
        log_start_offset=3,
        diverging_epoch=FetchResponse.EpochEndOffset(epoch=4, end_offset=15),
        records=b"",
    )
    assert answer_message(FETCH, Fetched(5, 1, 30, 20, snapshot=SnapshotId(20, 4)), 18) == fetch_response(
        high_watermark=30,
        log_start_offset=20,
        snapshot_id=FetchResponse.SnapshotId(end_offset=20, epoch=4),
        records=b"",
    )


# What the one who asked does not take


@pytest.mark.parametrize("request_", [VOTE, BEGIN, END, FETCH], ids=lambda request: type(request).__name__)
def test_a_rejected_request_has_failed(request_: Request) -> None:
    version = 18 if isinstance(request_, FetchFrom) else 1
    message = rejection(request_message(request_, version, Sender("c")), ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert type(message) is type(answer_message(request_, _answer_to(request_), version))
    received = type(message).decode(message.encode(version), version)
    with pytest.raises(KafkaError) as raised:
        read_answer(received, version)
    assert raised.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("request_", [VOTE, BEGIN, END, FETCH], ids=lambda request: type(request).__name__)
def test_an_answer_about_nothing_is_not_taken(request_: Request) -> None:
    message = type(answer_message(request_, _answer_to(request_), 1))()
    with pytest.raises(KafkaError, match="not about partition 0 of __cluster_metadata"):
        read_answer(message, 18)


def _answer_to(request: Request) -> Answer:
    match request:
        case Vote():
            return VoteAnswer(5)
        case FetchFrom():
            return Fetched(5)
        case _:
            return EpochAnswer(5)


def received_records(records: bytes) -> Answer:
    message = fetch_response(records=records)
    return read_answer(FetchResponse.decode(message.encode(18), 18), 18)


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    batch = build_batch([(0, None, b"v", ())], base_offset=17, leader_epoch=5)
    answer = received_records(bytes(batch) * 2 + bytes(batch[:-1]))
    assert isinstance(answer, Fetched)
    assert answer.batches == (batch, batch)
    assert all(isinstance(each, bytearray) for each in answer.batches), "a log writes into what it appends"


def test_a_damaged_batch_is_not_taken() -> None:
    batch = build_batch([(0, None, b"v", ())], base_offset=17, leader_epoch=5)
    batch[-1] ^= 1
    with pytest.raises(CorruptRecord, match="record is corrupt"):
        received_records(bytes(batch))


@pytest.mark.parametrize("later", [{"diverging": LogEnd(7, 1)}, {"snapshot": SnapshotId(9, 7)}])
def test_a_leader_does_not_name_a_later_epoch_than_its_own(later: dict[str, Any]) -> None:
    """A snapshot of the last epoch would become the log's epoch, and at the next start the node's."""
    fetch = FetchFrom(6, ReplicaKey(1), 0, 0)
    message = answer_message(fetch, Fetched(6, 2, **later), 17)
    with pytest.raises(KafkaError, match="the leader of epoch 6 names a later one"):
        read_answer(message, 17)


def test_half_a_snapshot_is_none() -> None:
    message = fetch_response(snapshot_id=FetchResponse.SnapshotId(end_offset=20))
    with pytest.raises(KafkaError, match="half of its id"):
        read_answer(message, 18)
