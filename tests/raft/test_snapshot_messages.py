"""Requests for snapshots as Kafka's messages: what comes back is what was sent, and Kafka builds the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.raft.answer_messages import NodeAddress
from barnabas.raft.peer_messages import FetchSnapshot, SnapshotPiece
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_messages import Sender
from barnabas.raft.seams import SnapshotId
from barnabas.raft.snapshot_messages import (
    piece_message,
    read_piece,
    read_snapshot_request,
    snapshot_request,
)
from tests.raft.peer_message_strategies import epochs, errors, keys, leader_ids, offsets

CLUSTER = "h3p9Kx-TQ3OqgKQkXVdIew"
ONE = ReplicaKey(1, b"1" * 16)
snapshots = st.builds(SnapshotId, offsets, epochs)
asked = st.builds(FetchSnapshot, epochs, keys, snapshots, offsets, st.integers(1, 2**31 - 1))
pieces = st.builds(SnapshotPiece, epochs, leader_ids, snapshots, offsets, offsets, st.binary(max_size=9), errors)


@given(asked, st.integers(0, 1))
def test_a_request_comes_back(request: FetchSnapshot, version: int) -> None:
    data = snapshot_request(request, Sender(CLUSTER)).encode(version)
    expected = request if version else request._replace(replica=ReplicaKey(request.replica.id))
    assert read_snapshot_request(FetchSnapshotRequest.decode(data, version), CLUSTER) == expected


@given(pieces, st.integers(0, 1))
def test_an_answer_comes_back(piece: SnapshotPiece, version: int) -> None:
    found = read_piece(FetchSnapshotResponse.decode(piece_message(piece, version).encode(version), version))
    assert found._replace(data=bytes(found.data)) == piece


def test_kafka_builds_the_same_request() -> None:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=0,
        current_leader_epoch=5,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=20, epoch=4),
        position=100,
        replica_directory_id=b"1" * 16,
    )
    message = snapshot_request(FetchSnapshot(5, ONE, SnapshotId(20, 4), 100), Sender(CLUSTER))
    assert message == FetchSnapshotRequest(
        cluster_id=CLUSTER,
        replica_id=1,
        max_bytes=1 << 20,
        topics=[FetchSnapshotRequest.TopicSnapshot(name="__cluster_metadata", partitions=[partition])],
    )


def test_an_answer_names_the_leaders_address_if_the_node_knows_it() -> None:
    piece = SnapshotPiece(5, 3, SnapshotId(20, 4), error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    address = NodeAddress(3, "three.example", 9093)
    named = [FetchSnapshotResponse.NodeEndpoint(node_id=3, host="three.example", port=9093)]
    assert piece_message(piece, 1, address).node_endpoints == named
    assert piece_message(piece, 0, address).node_endpoints == []
    assert piece_message(piece, 1, NodeAddress(2, "two.example", 9093)).node_endpoints == []


@pytest.mark.parametrize("change", ["topic", "two topics", "partition", "cluster"])
def test_a_request_about_something_else_is_rejected(change: str) -> None:
    message = snapshot_request(FetchSnapshot(5, ONE, SnapshotId(20, 4), 0), Sender(CLUSTER))
    if change == "topic":
        message.topics[0].name = "other"
    elif change == "two topics":
        message.topics *= 2
    elif change == "partition":
        message.topics[0].partitions[0].partition = 1
    else:
        message.cluster_id = "other"
    with pytest.raises(KafkaError) as refused:
        read_snapshot_request(message, CLUSTER)
    expected = ErrorCode.INCONSISTENT_CLUSTER_ID if change == "cluster" else ErrorCode.INVALID_REQUEST
    assert refused.value.code is expected


def test_an_answer_with_an_error_at_its_top_or_about_something_else_is_none() -> None:
    with pytest.raises(KafkaError) as refused:
        read_piece(FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    message = piece_message(SnapshotPiece(5, 3, SnapshotId(20, 4)), 1)
    message.topics[0].partitions[0].index = 1
    with pytest.raises(KafkaError):
        read_piece(message)
    message.topics[0].name = "other"
    with pytest.raises(KafkaError):
        read_piece(message)
