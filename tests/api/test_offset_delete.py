"""OffsetDelete: the coordinator deletes some committed offsets, keeps others, and returns an error code for each partition."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from barnabas.turns import ELEMENT
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting
from tests.short_turns import set_turn

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NO_OFFSET = -1


@pytest.fixture
def host(hosting: Hosting) -> GroupHosting:
    """Topics t and s with three partitions; group g has an offset in each, and a member that consumes s."""
    made = GroupHosting(hosting)
    for name in ("t", "s"):
        hosting.create_topic(name, 3)
    member_id = made.stable_member()
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id=member_id)
    for name in ("t", "s"):
        partitions = [
            OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=index + 10)
            for index in range(3)
        ]
        commit.topics.append(OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=partitions))
    committed = made.ask(8, commit, 8)
    assert {part.error_code for topic in committed.topics for part in topic.partitions} == {OK}
    return made


def delete(host: GroupHosting, *topics: tuple[str, list[int]], group_id: str = "g") -> list[str]:
    """Return the outcome of each partition, in the order of the response, or that of the whole request."""
    made = OffsetDeleteRequest
    request = made(
        group_id=group_id,
        topics=[
            made.OffsetDeleteRequestTopic(
                name=name, partitions=[made.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics
        ],
    )
    response = host.ask(47, request, 0)
    if response.error_code:
        assert response.topics == []
        return [ErrorCode(response.error_code).name]
    found = [(topic.name, part) for topic in response.topics for part in topic.partitions]
    assert len({topic.name for topic in response.topics}) == len(response.topics), "a topic is named once"
    return [f"{name}{part.partition_index} {ErrorCode(part.error_code).name}" for name, part in found]


def offsets(host: GroupHosting, name: str) -> list[int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=[0, 1, 2])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
    (answered,) = host.ask(9, OffsetFetchRequest(groups=[group]), 8).groups
    return [part.committed_offset for part in answered.topics[0].partitions]


def test_only_the_named_offsets_go(host: GroupHosting) -> None:
    assert delete(host, ("t", [0, 2])) == ["t0 NONE", "t2 NONE"]
    assert offsets(host, "t") == [NO_OFFSET, 11, NO_OFFSET]
    assert delete(host, ("t", [0])) == ["t0 NONE"], "one that is gone already is no error"
    assert offsets(host, "s") == [10, 11, 12]


def test_offsets_of_a_consumed_topic_stay(host: GroupHosting) -> None:
    assert delete(host, ("s", [1]), ("t", [1])) == ["s1 GROUP_SUBSCRIBED_TO_TOPIC", "t1 NONE"]
    assert offsets(host, "s") == [10, 11, 12]
    assert offsets(host, "t") == [10, NO_OFFSET, 12]


def test_what_is_unknown_is_told_apart_and_stops_nothing(host: GroupHosting) -> None:
    deleted = delete(host, ("t", [0, 7, 1]), ("gone", [0, 1]), ("s", [9]))
    assert sorted(deleted) == [
        "gone0 UNKNOWN_TOPIC_OR_PARTITION",
        "gone1 UNKNOWN_TOPIC_OR_PARTITION",
        "s9 UNKNOWN_TOPIC_OR_PARTITION",
        "t0 NONE",
        "t1 NONE",
        "t7 UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert offsets(host, "t") == [NO_OFFSET, NO_OFFSET, 12]


@pytest.mark.parametrize(
    ("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("nobody", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_request_that_fails_as_a_whole_says_nothing_of_its_partitions(
    host: GroupHosting, group_id: str, code: ErrorCode
) -> None:
    assert delete(host, ("t", [0]), ("gone", [0]), group_id=group_id) == [code.name]
    assert delete(host, ("gone", [0]), group_id=group_id) == [code.name]
    assert offsets(host, "t") == [10, 11, 12]


def test_members_that_are_no_consumers_may_consume_anything(host: GroupHosting) -> None:
    host.stable_member("connect", "connect")
    assert delete(host, ("t", [0]), group_id="connect") == ["NON_EMPTY_GROUP"]


def test_a_long_request_is_deleted_in_parts_and_answered_as_one(
    host: GroupHosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has two elements here, so the partitions of one topic are in several."""
    set_turn(monkeypatch, 2 * ELEMENT)
    assert sorted(delete(host, ("t", [0, 1, 8, 2]), ("gone", [0]))) == [
        "gone0 UNKNOWN_TOPIC_OR_PARTITION",
        "t0 NONE",
        "t1 NONE",
        "t2 NONE",
        "t8 UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert offsets(host, "t") == [NO_OFFSET] * 3
