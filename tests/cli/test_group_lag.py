"""How far a group is behind in each partition, from a cluster in memory."""

from typing import Any

from barnabas.cli.group_lag import (
    LAG,
    STABLE_LAG,
    lag_rows,
    lag_table,
    lag_text,
    share_offsets,
    total_stable_lag,
    with_stable_share_lags,
)
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
from barnabas.client.share_states import ShareState
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.protocol.state_batches import RecordState, StateBatch

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class FakeAdmin:
    """Each log begins at 2 and ends at 10; partition 2 has no leader.

    Args:
        stable_end: the last stable offset.
    """

    def __init__(self, stable_end: int = 10) -> None:
        self._stable_end = stable_end

    def list_offsets(
        self, timestamps: dict[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, Any]:
        end = self._stable_end if isolation_level else 10
        return {
            where: error_for(ErrorCode.LEADER_NOT_AVAILABLE)
            if where == T2
            else OffsetAndTimestamp(2 if position == EARLIEST else end, -1, -1)
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


def rows(found: GroupDescription, stable_end: int = 10) -> list[tuple[Any, ...]]:
    return lag_rows(FakeAdmin(stable_end), found)  # type: ignore[arg-type]


def test_bounds_of_a_partition_without_a_leader_are_unknown() -> None:
    assert log_bounds(FakeAdmin(), [T0, T2]) == {T0: (2, 10), T2: (None, None)}  # type: ignore[arg-type]


def test_a_row_for_each_partition_of_topics_committed_in_and_for_each_that_is_read() -> None:
    assert rows(group("classic", GroupMember("m", None, "c", "/h", [T0, T1]))) == [
        ("t", 0, 7, 2, 10, 3, 3, "m", "c", "/h"),
        ("t", 1, None, 2, 10, None, None, "m", "c", "/h"),
        ("t", 2, 3, None, None, None, None, None, None, None),
        ("t", 3, None, 2, 10, None, None, None, None, None),
    ]


def test_a_share_group_has_its_coordinators_lag_and_several_readers() -> None:
    found = group("share", GroupMember("m", None, "c", "/h", [T0]), GroupMember("n", None, "c", "/i", [T0, T1]))
    assert rows(found) == [
        ("t", 0, 4, 2, 10, 5, None, "m,n", "c", "/h,/i"),
        ("t", 1, None, 2, 10, None, None, "n", "c", "/i"),
    ]


def test_an_open_transaction_holds_records_back() -> None:
    found = rows(group("classic"), stable_end=8)
    assert [(row[LAG], row[STABLE_LAG]) for row in found] == [(3, 1), (None, None), (None, None), (None, None)]
    assert lag_text(found).startswith(
        "3 (held back by open transactions: 2; not counted: 2 partitions without a commit, 1"
    )
    assert total_stable_lag(found) == 1
    assert lag_table(found).hidden_first[-1] == "LAG-TO-LAST-STABLE-OFFSET"
    before_the_transaction, appended_since = (rows(group("classic"), stable_end=end)[0] for end in (5, 12))
    assert (before_the_transaction[STABLE_LAG], appended_since[STABLE_LAG]) == (0, 3)


def test_without_open_transactions_the_second_lag_is_hidden_first() -> None:
    found = rows(group("classic"))
    assert lag_table(found).hidden_first[0] == "LAG-TO-LAST-STABLE-OFFSET"
    assert lag_text(found[:1]) == "3"
    assert total_stable_lag(rows(group("share"))) is None


def test_a_share_groups_lag_to_the_last_stable_offset_needs_its_states() -> None:
    found = rows(group("share"))
    assert share_offsets(found) == {T0: ShareOffset(4, 5)}
    # Of the offsets 8 and 9, behind the last stable offset, 9 is finished.
    state = ShareState(4, (StateBatch(9, 9, RecordState.ACKNOWLEDGED, 1),))
    (row,) = with_stable_share_lags(FakeAdmin(8), found, {T0: state})  # type: ignore[arg-type]
    assert (row[LAG], row[STABLE_LAG]) == (5, 4)
    assert lag_text([row], is_share=True) == "5"
    assert with_stable_share_lags(FakeAdmin(8), found, {}) == found  # type: ignore[arg-type]
