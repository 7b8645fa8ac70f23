"""What a client asks of a node in a test, each in one call."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from tests.api.served_node import Serving


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
