"""The requests of the quorum's nodes at a controller's listener."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    VoteRequest,
)
from barnabas.protocol.primitives import ONE_UUID
from barnabas.records.record_batch import iter_batches
from tests.api.controlling import Controlling
from tests.metadata.controller_harness import CLUSTER_ID

TOPIC = "__cluster_metadata"


def fetch(offset: int = 0, *, version: int = 17, topic: bytes = ONE_UUID, max_wait_ms: int = 0, **fields: Any) -> Any:
    partition = FetchRequest.FetchPartition(
        partition=0, current_leader_epoch=1, fetch_offset=offset, last_fetched_epoch=0 if offset == 0 else 1
    )
    request = FetchRequest(
        cluster_id=CLUSTER_ID,
        max_wait_ms=max_wait_ms,
        topics=[FetchRequest.FetchTopic(topic_id=topic, partitions=[partition])],
        replica_state=FetchRequest.ReplicaState(replica_id=2),
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", [17, 18])
def test_an_observer_reads_the_metadata_log(controlling: Controlling, version: int) -> None:
    answer = controlling.ask(fetch(), version)
    assert answer.error_code == 0
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    assert partition.high_watermark == controlling.services.image().provenance.offset + 1
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
    assert next(header.base_offset for _, header in iter_batches(partition.records)) == 0


def test_only_the_metadata_log_can_be_read(controlling: Controlling) -> None:
    assert controlling.ask(fetch(topic=b"\5" * 16), 17).error_code == ErrorCode.INVALID_REQUEST
    assert controlling.ask(fetch(cluster_id="another"), 17).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_fetch_at_the_end_waits_for_the_next_change(controlling: Controlling) -> None:
    end = controlling.services.driver.node.end_offset
    began = controlling.loop.time()
    (partition,) = controlling.ask(fetch(end, max_wait_ms=500), 17).responses[0].partitions
    assert (partition.error_code, bytes(partition.records)) == (0, b"")
    assert controlling.loop.time() - began == pytest.approx(0.5)
    controlling.loop.call_later(0.2, lambda: controlling.services.controller.handle(70, 0, registration()))
    (partition,) = controlling.ask(fetch(end, max_wait_ms=500), 17).responses[0].partitions
    assert len(partition.records) > 0
    assert controlling.loop.time() - began == pytest.approx(0.7)


def registration() -> Any:
    return api(70).request_class(controller_id=9)


def vote(epoch: int, **fields: Any) -> VoteRequest:
    partition = VoteRequest.PartitionData(replica_epoch=epoch, replica_id=2, last_offset_epoch=1, last_offset=1000)
    request = VoteRequest(
        cluster_id=CLUSTER_ID, voter_id=1, topics=[VoteRequest.TopicData(topic_name=TOPIC, partitions=[partition])]
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", [0, 1])
def test_a_vote_is_answered_with_the_leader(controlling: Controlling, version: int) -> None:
    answer = controlling.ask(vote(1), version)
    (partition,) = answer.topics[0].partitions
    assert (answer.error_code, partition.vote_granted) == (0, False)
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    addresses = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    assert addresses == ([(1, "controller.example", 9093)] if version else [])


def piece(controlling: Controlling, snapshot: tuple[int, int], position: int, max_bytes: int, version: int = 1) -> Any:
    asked = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=1,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        position=position,
    )
    request = FetchSnapshotRequest(
        cluster_id=CLUSTER_ID,
        replica_id=2,
        max_bytes=max_bytes,
        topics=[FetchSnapshotRequest.TopicSnapshot(name=TOPIC, partitions=[asked])],
    )
    answer = controlling.ask(request, version)
    assert answer.error_code == 0
    assert len(answer.node_endpoints) == version
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", [0, 1])
def test_a_snapshot_is_read_piece_by_piece(controlling: Controlling, version: int) -> None:
    latest = controlling.services.driver.log.latest_snapshot()
    assert latest is not None
    whole = bytes(controlling.services.driver.log.read_snapshot(latest))
    first = piece(controlling, latest, 0, 100, version)
    assert (first.error_code, first.size, first.current_leader.leader_id) == (0, len(whole), 1)
    rest = piece(controlling, latest, 100, 1 << 20, version)
    assert bytes(first.unaligned_records) + bytes(rest.unaligned_records) == whole
    assert piece(controlling, latest, len(whole), 100, version).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert piece(controlling, (10_000, 1), 0, 100, version).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_vote_of_another_cluster_is_rejected_as_a_whole(controlling: Controlling) -> None:
    assert controlling.ask(vote(1, cluster_id="another"), 1).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert controlling.ask(vote(1, topics=[]), 1).error_code == ErrorCode.INVALID_REQUEST
    assert controlling.ask(FetchSnapshotRequest(cluster_id="another")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_the_ends_and_beginnings_of_epochs_are_answered(controlling: Controlling) -> None:
    begun = BeginQuorumEpochRequest.PartitionData(leader_id=2, leader_epoch=0)
    begin = BeginQuorumEpochRequest(
        cluster_id=CLUSTER_ID,
        voter_id=1,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[begun])],
    )
    answered = controlling.ask(begin).topics[0].partitions[0]
    assert (answered.error_code, answered.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 1)
    ended = EndQuorumEpochRequest.PartitionData(leader_id=2, leader_epoch=0)
    end = EndQuorumEpochRequest(
        cluster_id=CLUSTER_ID, topics=[EndQuorumEpochRequest.TopicData(topic_name=TOPIC, partitions=[ended])]
    )
    answered = controlling.ask(end).topics[0].partitions[0]
    assert (answered.error_code, answered.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 1)


def test_a_request_with_endless_arrays_is_rejected(controlling: Controlling) -> None:
    endpoint = BeginQuorumEpochRequest.LeaderEndpoint(name="C", host="h", port=1)
    begin = BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, voter_id=1, leader_endpoints=[endpoint] * 100_000)
    assert controlling.ask(begin, 1).error_code == ErrorCode.INVALID_REQUEST
    assert controlling.services.driver.node.leader_id == 1


def test_a_node_that_stops_says_so(controlling: Controlling) -> None:
    controlling.services.driver.close()
    assert controlling.ask(vote(1), 1).error_code == ErrorCode.BROKER_NOT_AVAILABLE
