"""How far a group is behind in each partition, from a cluster in memory."""

from typing import Any

from barnabas.cli.group_lag import lag_rows
from barnabas.cli.log_bounds import log_bounds
from barnabas.client.admin import (
    EARLIEST,
    CommittedOffset,
    GroupDescription,
    GroupMember,
    Node,
    OffsetAndTimestamp,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from barnabas.client.group_offsets import ShareOffset
from barnabas.protocol.errors import ErrorCode, error_for

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class FakeAdmin:
    """Each log begins at 2 and ends at 10; partition 2 has no leader."""

    def list_offsets(self, timestamps: dict[TopicPartition, int], **_: object) -> dict[TopicPartition, Any]:
        return {
            where: error_for(ErrorCode.LEADER_NOT_AVAILABLE)
            if where == T2
            else OffsetAndTimestamp(2 if position == EARLIEST else 10, -1, -1)
            for where, position in timestamps.items()
        }

    def describe_topics(self, names: list[str]) -> dict[str, Any]:
        """The topic has four partitions."""
        found = [PartitionMetadata(each, 1, 0, [1], [1], []) for each in range(4)]
        return {name: TopicMetadata(name, b"", False, found) for name in names}

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        return {T0: CommittedOffset(7), T2: CommittedOffset(3)}

    def list_share_group_offsets(self, group_id: str) -> dict[TopicPartition, ShareOffset]:
        return {T0: ShareOffset(4, 5)}


def group(kind: str, *members: GroupMember) -> GroupDescription:
    return GroupDescription("g", kind, "consumer", "Stable", "range", list(members), Node(1, "h", 1))


def rows(found: GroupDescription) -> list[tuple[Any, ...]]:
    return lag_rows(FakeAdmin(), found)  # type: ignore[arg-type]


def test_bounds_of_a_partition_without_a_leader_are_unknown() -> None:
    assert log_bounds(FakeAdmin(), [T0, T2]) == {T0: (2, 10), T2: (None, None)}  # type: ignore[arg-type]


def test_a_row_for_each_partition_of_topics_committed_in_and_for_each_that_is_read() -> None:
    assert rows(group("classic", GroupMember("m", None, "c", "/h", [T0, T1]))) == [
        ("t", 0, 7, 2, 10, 3, "m", "c", "/h"),
        ("t", 1, None, 2, 10, None, "m", "c", "/h"),
        ("t", 2, 3, None, None, None, None, None, None),
        ("t", 3, None, 2, 10, None, None, None, None),
    ]


def test_a_share_group_has_its_coordinators_lag_and_several_readers() -> None:
    found = group("share", GroupMember("m", None, "c", "/h", [T0]), GroupMember("n", None, "c", "/i", [T0, T1]))
    assert rows(found) == [
        ("t", 0, 4, 2, 10, 5, "m,n", "c", "/h,/i"),
        ("t", 1, None, 2, 10, None, "n", "c", "/i"),
    ]
