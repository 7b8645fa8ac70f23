"""The five requests to the share coordinator, on a whole node."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteShareGroupStateRequest,
    FindCoordinatorRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from barnabas.protocol.primitives import uuid_to_str
from tests.api.share_cluster import (
    Cluster,
)
from tests.coordinator.shards import runtime_of


def test_a_state_is_initialized_written_read_and_deleted(cluster: Cluster) -> None:
    node, topic_id = cluster.node, cluster.topic_id
    found = node.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{uuid_to_str(topic_id)}:0"]), 6)
    assert found.coordinators[0].error_code == 0
    cluster.until(lambda: node.server.coordinators.share.is_in_use)
    cluster.until(lambda: runtime_of(node.server.coordinators.share).active_partitions())  # type: ignore[union-attr]

    def ask(kind: Any, topic: Any, **fields: Any) -> Any:
        return (
            node.ask(
                kind(
                    group_id="g",
                    topics=[topic(topic_id=topic_id, partitions=[kind.PartitionData(partition=0, **fields)])],
                )
            )
            .results[0]
            .partitions[0]
        )

    Init, Read, Write = InitializeShareGroupStateRequest, ReadShareGroupStateRequest, WriteShareGroupStateRequest
    Summary, Delete = ReadShareGroupStateSummaryRequest, DeleteShareGroupStateRequest
    refused = ask(Read, Read.ReadStateData, leader_epoch=0)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Read operation on uninitialized share partition not allowed.",
    )
    assert ask(Init, Init.InitializeStateData, state_epoch=1, start_offset=-1).error_code == 0
    batch = Write.StateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)
    written = ask(
        Write,
        Write.WriteStateData,
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        delivery_complete_count=5,
        state_batches=[batch],
    )
    assert written.error_code == 0
    read = ask(Read, Read.ReadStateData, leader_epoch=0)
    assert (read.start_offset, read.state_epoch, read.state_batches[0].last_offset) == (0, 1, 4)
    summary = ask(Summary, Summary.ReadStateSummaryData, leader_epoch=0)
    assert (summary.start_offset, summary.delivery_complete_count) == (0, 5)
    written = ask(Write, Write.WriteStateData, state_epoch=1, leader_epoch=0, state_batches=[batch] * 10_001)
    assert (written.error_code, written.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "A partition has at most 10000 state batches.",
    )
    assert ask(Delete, Delete.DeleteStateData).error_code == 0
    assert ask(Summary, Summary.ReadStateSummaryData, leader_epoch=0).start_offset == -1
    assert node.ask(Delete(group_id="", topics=[])).results == []
