"""What ends the wait for an offset, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.awaited_offset import AwaitedOffset, all_settled
from barnabas.replication.purgatory import Purgatory
from barnabas.simulation.world_loop import WorldLoop
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting


class Reached(AwaitedOffset):
    def _reached(self) -> ErrorCode | None:
        return ErrorCode.NONE if self.partition.low_watermark >= self.required_offset else None


class Partition(SimpleNamespace):
    """What an offset asks of its partition; a key, as partitions are."""

    __hash__ = object.__hash__


def partition(low_watermark: int = 0, *, is_leader: bool = True, is_deleted: bool = False) -> Any:
    return cast(
        "Any",
        Partition(low_watermark=low_watermark, is_leader=is_leader, is_deleted=is_deleted, leaderships=1, lost=None),
    )


@pytest.fixture
def purgatory() -> Iterator[Purgatory]:
    loop = WorldLoop()
    yield Purgatory("test", loop)
    loop.close()


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


def test_a_leadership_that_was_lost_and_regained_ends_the_wait_though_the_offset_is_reached() -> None:
    """Another leader may have cut off what was awaited, and other records may be in its place."""
    at = partition(9)
    awaited = Reached(at, 5)
    at.leaderships += 1
    assert awaited.settle()
    assert awaited.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_each_leadership_of_a_replica_is_another_one(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    replica = hosting.replicas.partition("t", 0)
    first = replica.leaderships
    hosting.change(id_, leader=NODE)
    assert replica.leaderships == first, "a higher epoch of the same leader is no other leadership"
    hosting.change(id_, leader=2)
    hosting.change(id_, leader=2)
    hosting.change(id_, leader=NODE)
    assert replica.leaderships == first + 1


def test_an_open_one_hides_none_that_come_after_it(purgatory: Purgatory) -> None:
    both = [Reached(partition(0), 5), Reached(partition(9), 5)]
    waiting: Any = step(all_settled(both, purgatory, 100), purgatory.loop)
    assert not waiting.done()
    assert [each.error_code for each in both] == [None, ErrorCode.NONE]
    both[0].partition.low_watermark = 5  # type: ignore[misc]
    purgatory.notify(both[0].partition)
    assert purgatory.watched == 0
    purgatory.loop.run_until_complete(waiting)
    assert [each.error_code for each in both] == [ErrorCode.NONE, ErrorCode.NONE]


def test_what_is_settled_is_not_waited_for(purgatory: Purgatory) -> None:
    settled = [Reached(partition(9), 5), Reached(partition(5, is_leader=False), 5)]
    assert step(all_settled(settled, purgatory, 100), purgatory.loop) is None
    assert [each.error_code for each in settled] == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert purgatory.watched == 0


def test_a_late_one_times_out_unless_its_offset_is_reached_at_last(purgatory: Purgatory) -> None:
    at = partition(0)
    both = [Reached(partition(0), 5), Reached(at, 5)]
    waiting: Any = step(all_settled(both, purgatory, 100), purgatory.loop)
    at.low_watermark = 5
    purgatory.loop.run_until_complete(waiting)
    assert purgatory.loop.time() == pytest.approx(0.1)
    assert [each.error_code for each in both] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]
