"""OffsetCommit in every version."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting

VERSIONS = range(2, 11)


def commit(version: int, topic_id: bytes, *partitions: int, name: str = "t", **fields: Any) -> OffsetCommitRequest:
    parts = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=10 + index, committed_metadata=fields.pop("metadata", None)
        )
        for index in partitions
    ]
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=parts)
    return OffsetCommitRequest(group_id="g", topics=[topic], **fields)


def codes(response: Any) -> dict[int, ErrorCode]:
    assert len(response.topics) == 1, "each topic is answered once"
    return {p.partition_index: ErrorCode(p.error_code) for p in response.topics[0].partitions}


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_that_exist_and_others(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    id_ = hosting.create_topic("t", 2)
    response = host.ask(8, commit(version, id_, 0, 1, 2), version)
    assert codes(response) == {2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: ErrorCode.NONE, 1: ErrorCode.NONE}
    assert response.topics[0].topic_id == (id_ if version >= 10 else bytes(16))
    assert response.topics[0].name == ("" if version >= 10 else "t")


@pytest.mark.parametrize("version", VERSIONS)
def test_topic_that_is_not_there(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    response = host.ask(8, commit(version, b"x" * 16, 0), version)
    error = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(response) == {0: error}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_of_the_group_is_given_to_each_partition(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    id_ = hosting.create_topic("t", 2)
    request = commit(version, id_, 0, 1, 5, generation_id_or_member_epoch=7, member_id="m")
    error = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert codes(host.ask(8, request, version)) == {5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0: error, 1: error}


def test_a_commit_of_nothing(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    assert host.ask(8, OffsetCommitRequest(group_id="g"), 9).topics == []


@pytest.mark.parametrize("metadata", [None, "", "note", "ß" * 2048])
def test_metadata_comes_back(hosting: Hosting, metadata: str | None) -> None:
    host = GroupHosting(hosting)
    id_ = hosting.create_topic("t")
    assert codes(host.ask(8, commit(9, id_, 0, metadata=metadata), 9)) == {0: ErrorCode.NONE}
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    fetched = host.ask(9, OffsetFetchRequest(groups=[group]), 9)
    # Kafka's record has no null metadata: null comes back empty.
    assert fetched.groups[0].topics[0].partitions[0].metadata == (metadata or "")


def test_a_retention_time_beyond_all_dates_keeps_the_offset(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    id_ = hosting.create_topic("t", 1)
    assert codes(host.ask(8, commit(4, id_, 0, retention_time_ms=2**63 - 1), 4)) == {0: ErrorCode.NONE}
    wanted = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    found = host.ask(9, OffsetFetchRequest(group_id="g", topics=[wanted]), 7)
    assert found.topics[0].partitions[0].committed_offset == 10
