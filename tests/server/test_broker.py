"""The assembly: what survives a restart, what a fault does, what a reset leaves."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from barnabas.server.broker import CannotStart
from tests.api.serving import Serving


def produce(node: Serving, topic: str, value: bytes) -> int:
    batch = build_batch([(node.now_ms, None, value, [])])
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    answer = node.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == 0, result
    offset: int = result.base_offset
    return offset


def fetched(node: Serving, topic: str) -> bytes:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    answer = node.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted]), 12)
    return bytes(answer.responses[0].partitions[0].records)


def commit(node: Serving, group: str, offset: int) -> int:
    node.ask(FindCoordinatorRequest(coordinator_keys=[group]))
    Topic = OffsetCommitRequest.OffsetCommitRequestTopic
    Partition = OffsetCommitRequest.OffsetCommitRequestPartition
    partition = Partition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(group_id=group, member_id="", topics=[Topic(name="t", partitions=[partition])])
    code: int = node.ask(request, 8).topics[0].partitions[0].error_code
    return code


def committed(node: Serving, group: str) -> int:
    wanted = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group_ = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[wanted])
    (answer,) = node.ask(OffsetFetchRequest(groups=[group_]), 8).groups
    assert answer.error_code == 0, answer
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def topics(node: Serving) -> dict[str, Any]:
    return {t.name: t for t in node.ask(MetadataRequest(topics=None)).topics if not t.is_internal}


def test_a_restart_finds_topics_records_groups_and_producer_ids(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    node.create_topic("t", 3, retention_ms="-1")
    assert [produce(node, "t", b"%d" % number) for number in range(3)] == [0, 1, 2]
    assert commit(node, "g", 2) == 0
    first_id = node.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)).producer_id
    before, records = topics(node)["t"], fetched(node, "t")
    node.close()

    again = Serving(tmp_path)
    try:
        after = topics(again)["t"]
        assert (after.topic_id, len(after.partitions)) == (before.topic_id, 3)
        assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch
        assert fetched(again, "t") == records
        assert committed(again, "g") == 2
        assert produce(again, "t", b"more") == 3
        assert again.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)).producer_id > first_id
    finally:
        again.close()


def test_a_log_of_a_topic_that_is_gone_is_removed_at_the_start(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    node.create_topic("t")
    produce(node, "t", b"one")
    node.close()
    (tmp_path / "data" / "ghost-0").mkdir()
    (tmp_path / "data" / "ghost-0" / "00000000000000000000.log").write_bytes(b"")
    again = Serving(tmp_path)
    try:
        assert not (tmp_path / "data" / "ghost-0").exists()
        assert list((tmp_path / "data").glob("ghost-0.*-delete"))
        assert fetched(again, "t")
    finally:
        again.close()


def test_a_fault_ends_the_node_and_leaves_the_directory_as_a_crash_would(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Serving(tmp_path)
    node.create_topic("t")
    produce(node, "t", b"one")
    waiting = node.loop.create_task(node.server.wait_failed())
    node.server.fail(RuntimeError("a record that cannot be replayed"))
    node.loop.run_until_complete(waiting)
    node.close()
    assert "cannot be replayed" in caplog.text
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    again = Serving(tmp_path)
    try:
        assert b"one" in fetched(again, "t")
    finally:
        again.close()


def test_a_start_that_fails_gives_lock_and_port_back(tmp_path: Path) -> None:
    Serving(tmp_path).close()
    with pytest.raises(CannotStart, match="belongs to cluster"):
        Serving(tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAw")
    quorum_state = tmp_path / "data" / "__cluster_metadata-0" / "quorum-state"
    whole = quorum_state.read_bytes()
    quorum_state.write_bytes(b"{broken")
    with pytest.raises(CannotStart, match="metadata log"):
        Serving(tmp_path)
    quorum_state.write_bytes(whole)
    node = Serving(tmp_path)
    assert node.server.cluster_id
    node.close()


def test_a_single_node_works_with_kafkas_internal_topic_defaults(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    try:
        assert node.server.config.offsets_topic_replication_factor == 3
        (found,) = node.ask(FindCoordinatorRequest(coordinator_keys=["g"])).coordinators
        assert (found.error_code, found.node_id, found.host) == (ErrorCode.NONE, 1, "dialled.example")
        assert commit(node, "g", 1) in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    finally:
        node.close()


def test_a_request_is_answered_the_same_on_a_second_connection(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    try:
        body = struct.pack(">i", -1)
        assert node.send(3, 1, body) == node.send(3, 1, body)
    finally:
        node.close()
