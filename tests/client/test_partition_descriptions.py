"""Partitions page by page, from brokers that know eligible leader replicas and from brokers that do not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin, TopicPartition
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from tests.client.scripted_broker import MemoryCluster

Response = messages.DescribeTopicPartitionsResponse


def partition(index: int, leader: int = 1, **fields: Any) -> Any:
    lists = {"replica_nodes": [1, 2], "isr_nodes": [leader] if leader >= 0 else []} | fields
    return Response.DescribeTopicPartitionsResponsePartition(partition_index=index, leader_id=leader, **lists)


@pytest.fixture
def pages(memory: MemoryCluster) -> MemoryCluster:
    """Three partitions of two topics, one a page; one has no leader."""
    topics = {
        "a": [partition(0), partition(1, -1, eligible_leader_replicas=[2], last_known_elr=[2], offline_replicas=[2])],
        "b": [partition(0, 2)],
    }

    def describe(broker_id: int, request: Any, version: int) -> Any:
        names = [topic.name for topic in request.topics] or ["a", "b"]
        asked = [(name, each) for name in names for each in topics.get(name, [])]
        if request.cursor is not None:
            start = (request.cursor.topic_name, request.cursor.partition_index)
            assert not request.topics or start[0] in names
            asked = [item for item in asked if (item[0], item[1].partition_index) >= start]
        found = [
            Response.DescribeTopicPartitionsResponseTopic(name=name, partitions=[each]) for name, each in asked[:1]
        ]
        following = None
        if len(asked) > 1:
            following = Response.Cursor(topic_name=asked[1][0], partition_index=asked[1][1].partition_index)
        return Response(topics=found, next_cursor=following)

    memory.handlers["DescribeTopicPartitionsRequest"] = describe
    return memory


@pytest.mark.parametrize(("topics", "requests"), [(None, 3), (["b", "a"], 3), (["b", "nope"], 1), ([], 0)])
def test_partitions_are_read_page_by_page(
    pages: MemoryCluster, admin: Admin, topics: list[str] | None, requests: int
) -> None:
    found = admin.describe_partitions(topics)
    wanted = ["a", "b"] if topics is None else topics
    assert sorted(found) == [
        TopicPartition(name, index) for name, index in (("a", 0), ("a", 1), ("b", 0)) if name in wanted
    ]
    assert len(pages.asked("DescribeTopicPartitionsRequest")) == requests
    if TopicPartition("a", 1) in found:
        described = found[TopicPartition("a", 1)]
        assert (described.leader, described.elr, described.last_known_elr, described.offline) == (-1, [2], [2], [2])


def test_partitions_without_a_leader_are_explained(pages: MemoryCluster, admin: Admin) -> None:
    ((at, why),) = admin.leaderless_partitions().items()
    assert str(at) == "a-1"
    assert why.reason == "eligible leader replica 2 is offline, and replica 1 may lack records"
    assert why.remedy.startswith("start broker 2")


def test_an_old_broker_describes_partitions_without_eligible_leader_replicas(
    memory: MemoryCluster, admin: Admin
) -> None:
    del memory.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS]
    found = admin.describe_partitions(["t"])
    assert memory.asked("MetadataRequest")
    assert [(at.partition, each.elr, each.last_known_elr) for at, each in found.items()] == [(0, [], []), (1, [], [])]
    assert all(each.leader >= 0 and each.why_leaderless is None for each in found.values())
