"""What ends the wait for an offset, and in which order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.awaited_offset import AwaitedOffset, settle_all, time_out


class Reached(AwaitedOffset):
    def _reached(self) -> ErrorCode | None:
        return ErrorCode.NONE if self.partition.low_watermark >= self.required_offset else None


def partition(low_watermark: int = 0, *, is_leader: bool = True, is_deleted: bool = False) -> Any:
    return cast("Any", SimpleNamespace(low_watermark=low_watermark, is_leader=is_leader, is_deleted=is_deleted))


@pytest.mark.parametrize(
    ("at", "outcome"),
    [
        (partition(4), None),
        (partition(5), ErrorCode.NONE),
        (partition(5, is_leader=False), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (partition(5, is_leader=False, is_deleted=True), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_deleted_replica_comes_before_a_lost_leadership_and_that_before_the_offset(
    at: Any, outcome: ErrorCode | None
) -> None:
    awaited = Reached(at, 5)
    assert (awaited.settle(), awaited.error_code) == (outcome is not None, outcome)


def test_an_outcome_stays() -> None:
    at = partition(5)
    awaited = Reached(at, 5)
    assert awaited.settle()
    at.is_leader = False
    assert awaited.settle()
    assert awaited.error_code == ErrorCode.NONE


def test_an_open_one_hides_none_that_come_after_it() -> None:
    both = [Reached(partition(0), 5), Reached(partition(9), 5)]
    assert not settle_all(both)
    assert [each.error_code for each in both] == [None, ErrorCode.NONE]


def test_a_late_one_times_out_unless_its_offset_is_reached_at_last() -> None:
    at = partition(0)
    both = [Reached(partition(0), 5), Reached(at, 5)]
    assert not settle_all(both)
    at.low_watermark = 5
    time_out(both)
    assert [each.error_code for each in both] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
