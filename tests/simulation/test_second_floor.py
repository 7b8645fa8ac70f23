"""The checkers of what only some worlds have find what they look for, and a seed of each runs clean."""

from __future__ import annotations

import pytest

from tests.simulation import checkers
from tests.simulation.cluster import run
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.history import History, Partition
from tests.simulation.share_history import Hold, Leader, Record, ShareHistory

pytestmark = pytest.mark.usefixtures("quiet")

P = Partition("t", 0)
LEADER: Leader = (("127.0.0.1", 9092), 3)
SEEDS = (63,)
"""A share group."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_run_clean(seed: int) -> None:
    assert run(seed).violations == {}


def test_ordinary_seeds_have_each_workload() -> None:
    plans = [ClusterPlan.draw(seed) for seed in range(100)]
    assert sum(plan.share_members > 0 for plan in plans) >= 5


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


def hold(
    member: str, since: float, until: float, *, is_held_at: float = 9.0, leader: Leader | None = LEADER, count: int = 1
) -> Hold:
    return Hold(member, P, 5, count, leader, since - 0.1, since, until, is_held_at)


@pytest.mark.parametrize(
    ("first", "second", "clean"),
    [
        (hold("a", 1.0, 3.0), hold("b", 3.0, 5.0), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0), False),
        (hold("a", 1.0, 3.0), hold("a", 2.0, 5.0), False),
        (hold("a", 1.0, 3.0, is_held_at=1.5), hold("b", 2.0, 5.0), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0, leader=(LEADER[0], 4)), True),
        (hold("a", 1.0, 3.0), hold("b", 2.0, 5.0, leader=None), True),
        (hold("a", 1.0, 3.0), hold("b", 3.0, 5.0, count=6), False),
    ],
)
def test_a_record_that_two_members_hold_is_found(first: Hold, second: Hold, clean: bool) -> None:
    shared = ShareHistory(holds=[first, second])
    assert names(History(shared=shared)) == (set() if clean else {"shared_records"})


@pytest.mark.parametrize(("since", "leader", "clean"), [(2.5, LEADER, False), (2.5, None, True), (2.0, LEADER, True)])
def test_a_finished_record_that_is_delivered_is_found(since: float, leader: Leader | None, clean: bool) -> None:
    shared = ShareHistory(holds=[hold("b", since, 5.0, leader=leader)], finished={Record(P, 5): 2.0})
    assert names(History(shared=shared)) == (set() if clean else {"shared_records"})


@pytest.mark.parametrize(
    ("count", "lost", "is_asked", "clean"),
    [(5, 0, False, True), (4, 1, False, True), (1, 0, True, True), (4, 0, False, False)],
)
def test_a_record_that_nobody_finishes_is_found(count: int, lost: int, is_asked: bool, clean: bool) -> None:
    shared = ShareHistory(holds=[hold("a", 1.0, 3.0, count=count)], is_drained=True)
    shared.lost_answers[P] = lost
    if is_asked:
        shared.asked_to_finish[Record(P, 5)] = None
    found = checkers.ALL["shared_records"](History(shared=shared, final_logs={P: [(5, b"x")]}))
    assert (not found) == clean
