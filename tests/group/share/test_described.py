"""Descriptions of share groups and their offsets: start offsets, lags, and what is unknown."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest
from barnabas.share.share_coordinator_shard import StateSummary
from barnabas.steps import start
from tests.group.share.hosting import Host

Request = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
RequestedTopic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic


def offsets(host: Host, *topics: tuple[str, list[int]], group_id: str = "g") -> Any:
    """Describe the offsets of the named partitions, or of all."""
    named = [RequestedTopic(topic_name=name, partitions=partitions) for name, partitions in topics]
    request = Request(group_id=group_id, topics=named or None)
    return start(host.service.describe_offsets(request), host.loop).result()


def partitions(answer: Any) -> list[tuple[int, int, int, int]]:
    """Index, start offset, leader epoch and lag of each partition."""
    return [
        (one.partition_index, one.start_offset, one.leader_epoch, one.lag)
        for topic in answer.topics
        for one in topic.partitions
    ]


def test_the_lag_is_what_is_left_between_start_and_end() -> None:
    host = Host(q=2, r=1)
    host.persister.counts = StateSummary(1, 6, 10, 3)
    asked = []

    def end_offset(topic: str, index: int) -> int:
        asked.append((topic, index))
        return 25 + index

    host.end_offset = end_offset
    answer = offsets(host, ("q", [1, 0]), ("r", [0]))
    assert (answer.group_id, answer.error_code) == ("g", 0)
    assert [(topic.topic_name, bytes(topic.topic_id)) for topic in answer.topics] == [
        ("q", host.q),
        ("r", bytes(host.metadata.image.topics.by_name["r"].topic_id)),
    ]
    assert partitions(answer) == [(1, 10, 6, 13), (0, 10, 6, 12), (0, 10, 6, 12)]
    assert asked == [("q", 1), ("q", 0), ("r", 0)]
    r = bytes(host.metadata.image.topics.by_name["r"].topic_id)
    assert host.persister.described == [("g", host.q, 1), ("g", host.q, 0), ("g", r, 0)]


def test_partitions_that_have_not_started_have_neither_offset_nor_lag() -> None:
    host = Host(q=1)
    host.persister.counts = StateSummary(1, 4, -1, -1)
    assert partitions(offsets(host, ("q", [0]))) == [(0, -1, 4, -1)]
    host.persister.counts = StateSummary(1, 4, 9, -1)
    assert partitions(offsets(host, ("q", [0]))) == [(0, 9, 4, -1)], "how many are finished is unknown"


def test_a_lag_fits_its_field_whatever_the_start_offset_is() -> None:
    host = Host(q=1)
    host.persister.counts = StateSummary(1, 4, -(2**63), 0)
    assert partitions(offsets(host, ("q", [0]))) == [(0, -(2**63), 4, 2**63 - 1)]


def test_partitions_of_a_missing_topic_are_unknown() -> None:
    host = Host(q=1)
    answer = offsets(host, ("missing", [4, 2]), ("q", [0]))
    assert [topic.topic_name for topic in answer.topics] == ["q", "missing"]
    assert partitions(answer)[1:] == [(4, -1, 0, -1), (2, -1, 0, -1)]
    assert [one.error_code for one in answer.topics[1].partitions] == [0, 0]


def test_a_partition_whose_end_is_unknown_has_the_error() -> None:
    host = Host(q=1)

    def end_offset(topic: str, index: int) -> int:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "some other words")

    host.end_offset = end_offset
    (one,) = offsets(host, ("q", [0])).topics[0].partitions
    assert (one.partition_index, one.error_code) == (0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert one.error_message == ErrorCode.NOT_LEADER_OR_FOLLOWER.default_message


def test_all_offsets_are_those_of_the_group_and_of_topics_that_exist() -> None:
    host = Host(q=3, r=1, other=1)
    host.join("m", "q", "r")
    found = {topic.topic_name: [one.partition_index for one in topic.partitions] for topic in offsets(host).topics}
    assert found == {"q": [0, 1, 2], "r": [0]}
    host.metadata.delete_topic("q")
    assert [topic.topic_name for topic in offsets(host).topics] == ["r"]
    missing = offsets(host, group_id="none")
    assert (missing.group_id, missing.error_code, missing.topics) == ("none", 0, [])


def test_the_offsets_of_a_group_that_cannot_be_read_are_an_error() -> None:
    host = Host()
    host.coordinator.on_resigned(0)
    answer = offsets(host)
    assert (answer.group_id, answer.error_code) == ("g", ErrorCode.NOT_COORDINATOR)
    assert answer.error_message == ErrorCode.NOT_COORDINATOR.default_message


def describe(host: Host, *group_ids: str) -> list[Any]:
    return start(host.service.describe(group_ids), host.loop).result()


def test_a_group_is_described_with_its_members() -> None:
    host = Host(q=2, r=1)
    epoch = host.join("m", "r", "q")
    (group,) = describe(host, "g")
    assert (group.group_id, group.error_code, group.group_state) == ("g", 0, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (epoch, epoch, "simple")
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.rack_id) == ("m", epoch, None)
    assert (member.client_id, member.client_host) == ("client", "/host")
    assert member.subscribed_topic_names == ["q", "r"]
    assert sorted((part.topic_name, part.partitions) for part in member.assignment.topic_partitions) == [
        ("q", [0, 1]),
        ("r", [0]),
    ]
    host.metadata.delete_topic("r")
    (member,) = describe(host, "g")[0].members
    assert [part.topic_name for part in member.assignment.topic_partitions] == ["q"]


def test_groups_that_cannot_be_described_have_their_errors_in_order() -> None:
    host = Host()
    host.join("m")
    described = describe(host, "none", "", "g")
    assert [(one.group_id, one.error_code) for one in described] == [
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_GROUP_ID),
        ("g", 0),
    ]
    assert described[0].error_message == "Group none not found."
