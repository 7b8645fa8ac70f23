"""The walk of a rolling restart: its order, what stops it, and what it waits for."""

from __future__ import annotations

import pytest

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.partition_descriptions import PartitionDescription
from barnabas.client.quorum import Quorum, QuorumReplica
from barnabas.client.rolling_restart import (
    Action,
    Doubt,
    Elect,
    Finished,
    Look,
    Restart,
    RollingRestart,
    Wait,
    risk_of,
    roles_of,
    unrest_in,
)

AT = TopicPartition("orders", 0)
NOW_MS = 1_000_000


def partition(leader: int, replicas: list[int], isr: list[int] | None = None) -> PartitionDescription:
    return PartitionDescription(leader, 1, replicas, replicas if isr is None else isr, [], [], [])


def quorum(leader: int, voters: list[int], silent: tuple[int, ...] = ()) -> Quorum:
    replicas = [QuorumReplica(each, 10, True, None, NOW_MS - 6_000 * (each in silent)) for each in voters]
    return Quorum(leader, 1, 10, replicas)


WELL = Look([1, 2, 3], [], quorum(2, [1, 2, 3]), {AT: partition(1, [1, 2, 3])}, [], {"orders": 2})


def settled(walk: RollingRestart, look: Look, now_ms: int) -> Action:
    """Let the node that was restarted come back; the second good look confirms it."""
    assert isinstance(walk.step(look, now_ms), Wait)
    return walk.step(look, now_ms)


def test_the_active_controller_is_the_last_and_a_broker_without_a_vote_the_first() -> None:
    look = WELL._replace(serving=[1, 2, 3, 4], quorum=quorum(2, [1, 2, 3, 100]))
    assert look.nodes == [4, 1, 3, 100, 2]
    walk = RollingRestart([1, 2, 3, 4, 100], within_ms=1000)
    action = walk.step(look, 0)
    order = []
    while isinstance(action, Restart):
        order.append(action.node)
        action = settled(walk, look, 7)
    assert (action, order) == (Finished(), [4, 1, 3, 100, 2])
    assert (walk.left, set(walk.done)) == ([], {1, 2, 3, 4, 100})


def test_the_controller_that_leads_now_is_the_last_not_the_one_of_the_beginning() -> None:
    walk = RollingRestart([1, 2, 3], within_ms=1000)
    assert walk.step(WELL, 0) == Restart(1)
    assert settled(walk, WELL._replace(quorum=quorum(3, [1, 2, 3])), 1) == Restart(2)


def test_a_node_is_back_when_its_old_process_is_gone_and_all_is_in_sync() -> None:
    walk = RollingRestart([1], within_ms=10_000)
    assert walk.step(WELL, 0) == Restart(1)
    assert walk.step(WELL, 1, has_ended=False) == Wait("node 1 still runs in the process that it had before")
    away = WELL._replace(serving=[2, 3], fenced=[1], partitions={AT: partition(2, [1, 2, 3], [2, 3])})
    assert walk.step(away, 2) == Wait("broker 1 does not serve")
    assert walk.step(away._replace(fenced=[], quorum=None), 2) == Wait("node 1 is not part of the cluster")
    assert walk.step("nobody answers", 3) == Wait("nobody answers")
    behind = WELL._replace(partitions={AT: partition(2, [1, 2, 3], [2, 3])})
    assert walk.step(behind, 4) == Wait("not every replica is in sync of orders-0")
    led_by_another = WELL._replace(partitions={AT: partition(2, [1, 2, 3])})
    assert walk.step(led_by_another, 5) == Elect([AT])
    assert isinstance(walk.step(WELL, 6), Wait), "one look may be old"
    assert walk.step(behind, 7) == Wait("not every replica is in sync of orders-0")
    assert settled(walk, WELL, 8) == Finished()
    assert walk.done == {1: 8}


def test_a_node_that_does_not_come_back_ends_the_walk() -> None:
    walk = RollingRestart([1, 3], within_ms=10_000)
    walk.step(WELL, 0)
    away = WELL._replace(serving=[2, 3], fenced=[1])
    assert isinstance(walk.step(away, 10_000), Wait)
    assert walk.step(away, 12_000) == Doubt("broker 1 does not serve, 12 s after node 1 was restarted")
    assert walk.left == [1, 3]
    other = RollingRestart([1], within_ms=10)
    other.step(WELL, 0)
    led_by_another = WELL._replace(partitions={AT: partition(2, [1, 2, 3])})
    assert other.step(led_by_another, 3000) == Doubt(
        "the preferred leaders do not take over, 3 s after node 1 was restarted"
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (WELL._replace(quorum=quorum(-1, [1, 2, 3])), "the quorum has no leader"),
        (WELL._replace(quorum=quorum(2, [1, 2, 3], (1, 3))), "controller 1, 3 does not read the metadata log"),
        (WELL._replace(serving=[1, 2], fenced=[3]), "broker 3 does not serve"),
        (WELL._replace(partitions={AT: partition(-1, [1, 2, 3], [])}), "no replica leads orders-0"),
        (WELL._replace(moving=[AT]), "replicas of orders-0 are being moved"),
        (
            WELL._replace(partitions={TopicPartition("t", each): partition(1, [1, 2], [1]) for each in range(7)}),
            "not every replica is in sync of t-0, t-1, t-2, t-3, t-4 and 2 more",
        ),
    ],
)
def test_nothing_restarts_in_a_cluster_that_is_not_well(changed: Look, why: str) -> None:
    assert unrest_in(changed) == why
    assert RollingRestart([1], within_ms=1000, may_interrupt=True).step(changed, 0) == Doubt(why)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (WELL._replace(quorum=quorum(1, [1, 2])), "without node 1 the quorum of 2 has no majority"),
        (WELL._replace(quorum=quorum(1, [1])), "without node 1 the quorum of 1 has no majority"),
        (WELL._replace(partitions={AT: partition(1, [1])}), "without node 1 no replica is left of orders-0"),
        (
            WELL._replace(partitions={AT: partition(1, [1, 2])}),
            "without node 1 fewer replicas than min.insync.replicas are left of orders-0",
        ),
    ],
)
def test_a_node_whose_absence_clients_would_notice_does_not_go_unless_it_may(changed: Look, why: str) -> None:
    assert risk_of(changed, 1) == why
    assert RollingRestart([1], within_ms=1000).step(changed, 0) == Doubt(why, may_be_accepted=True)
    assert RollingRestart([1], within_ms=1000, may_interrupt=True).step(changed, 0) == Restart(1)


def test_a_node_without_replicas_and_votes_may_always_go() -> None:
    assert risk_of(WELL._replace(serving=[1, 2, 3, 4], partitions={AT: partition(1, [1])}), 4) is None
    assert risk_of(WELL._replace(quorum=None), 1) is None


def test_what_a_node_is() -> None:
    look = WELL._replace(serving=[1, 2, 3, 4], quorum=quorum(2, [1, 2, 3, 100]))
    assert [roles_of(look, each) for each in (1, 2, 4, 100)] == [
        "broker and controller",
        "broker and active controller",
        "broker",
        "controller",
    ]


def test_nobody_can_look_before_the_first_restart() -> None:
    assert RollingRestart([1], within_ms=1000).step("no answer", 0) == Doubt("no answer")
    assert RollingRestart([], within_ms=1000).step("no answer", 0) == Finished()
