"""OffsetFetch in every version."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting

OLD, MANY, BY_ID = range(1, 8), range(8, 10), range(10, 11)


@pytest.fixture
def host(hosting: Hosting) -> GroupHosting:
    made = GroupHosting(hosting)
    id_ = hosting.create_topic("t", 3)
    part = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=42, committed_leader_epoch=3, committed_metadata="note"
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", topic_id=id_, partitions=[part])
    made.ask(8, OffsetCommitRequest(group_id="g", topics=[topic]), 10)
    return made


def offsets(topics: Any) -> list[tuple[int, int, int, str, int]]:
    return [
        (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for topic in topics
        for p in topic.partitions
    ]


def old(*partitions: int, group_id: str = "g", **fields: Any) -> OffsetFetchRequest:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=list(partitions))
    return OffsetFetchRequest(group_id=group_id, topics=[topic], **fields)


def many(topics: list[Any] | None, *group_ids: str) -> OffsetFetchRequest:
    Group = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(groups=[Group(group_id=group_id, topics=topics) for group_id in group_ids])


@pytest.mark.parametrize("version", OLD)
def test_one_group(host: GroupHosting, version: int) -> None:
    response = host.ask(9, old(0, 1), version)
    epoch = 3 if version >= 5 else -1
    assert offsets(response.topics) == [(0, -1, -1, "", 0), (1, 42, epoch, "note", 0)]
    assert response.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 8))
def test_all_offsets_and_none(host: GroupHosting, version: int) -> None:
    response = host.ask(9, OffsetFetchRequest(group_id="g", topics=None), version)
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("t", 1)]
    assert host.ask(9, OffsetFetchRequest(group_id="g", topics=[]), version).topics == []


@pytest.mark.parametrize("version", OLD)
def test_group_that_is_not_there(host: GroupHosting, version: int) -> None:
    response = host.ask(9, old(1, group_id="other"), version)
    assert offsets(response.topics) == [(1, -1, -1, "", 0)]


@pytest.mark.parametrize("version", OLD)
def test_coordinator_elsewhere(host: GroupHosting, version: int) -> None:
    for partition in range(2):
        host.coordinator.on_resigned(partition)
    response = host.ask(9, old(1), version)
    if version == 1:
        assert offsets(response.topics) == [(1, -1, -1, "", ErrorCode.NOT_COORDINATOR)]
    else:
        assert (response.topics, response.error_code) == ([], ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("version", MANY)
def test_many_groups(host: GroupHosting, version: int) -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[1, 9])
    response = host.ask(9, many([topic], "other", "g"), version)
    assert [group.group_id for group in response.groups] == ["other", "g"]
    assert offsets(response.groups[0].topics) == [(1, -1, -1, "", 0), (9, -1, -1, "", 0)]
    assert offsets(response.groups[1].topics) == [(1, 42, 3, "note", 0), (9, -1, -1, "", 0)]
    assert offsets(host.ask(9, many(None, "g"), version).groups[0].topics) == [(1, 42, 3, "note", 0)]


@pytest.mark.parametrize("version", BY_ID)
def test_topics_by_id(host: GroupHosting, version: int) -> None:
    id_ = host.hosting.image.topics.by_name["t"].topic_id
    Topic = OffsetFetchRequest.OffsetFetchRequestTopics
    asked = [Topic(topic_id=b"x" * 16, partition_indexes=[1]), Topic(topic_id=id_, partition_indexes=[1])]
    (group,) = host.ask(9, many(asked, "g"), version).groups
    assert [topic.topic_id for topic in group.topics] == [id_, b"x" * 16]
    assert offsets(group.topics) == [(1, 42, 3, "note", 0), (1, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)]
    (group,) = host.ask(9, many(None, "g"), version).groups
    assert [topic.topic_id for topic in group.topics] == [id_]


def test_a_topic_created_again_has_no_offsets(host: GroupHosting) -> None:
    host.hosting.delete_topic(host.hosting.image.topics.by_name["t"].topic_id)
    assert host.ask(9, many(None, "g"), 10).groups[0].topics == [], "its topic is gone"
    new_id = host.hosting.create_topic("t", 3, number=77)
    asked = [OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=new_id, partition_indexes=[1])]
    assert offsets(host.ask(9, many(asked, "g"), 10).groups[0].topics) == [(1, -1, -1, "", 0)]
    assert offsets(host.ask(9, old(1), 7).topics) == [(1, -1, -1, "", 0)]
