"""The checker of settings, partition counts, quotas and feature levels finds what it looks for, and a seed runs clean."""

from __future__ import annotations

import math

import pytest

from tests.simulation import checkers
from tests.simulation.cluster import run
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.history import History
from tests.simulation.tuning_history import Change, Register, Sight, TuningHistory

pytestmark = pytest.mark.usefixtures("quiet")

SEED = 25
"""A voter that joins is killed, and others are cut off, while everything is tuned."""


@pytest.mark.slow
def test_a_seed_runs_clean_and_sees_changes_and_a_throttled_producer() -> None:
    result = run(SEED)
    assert result.violations == {}
    assert result.counts()["tunings"] > 0
    assert result.counts()["throttled answers"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["limit_nobody", "keep_the_highest_level"])
def test_a_bug_that_shows_in_every_world_is_caught(bug: str) -> None:
    assert "linear_settings" in run(SEED, bug).violations


def test_ordinary_seeds_are_tuned() -> None:
    assert sum(ClusterPlan.draw(seed).is_tuned for seed in range(100)) >= 5


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


def saw(value: int | None, at: float, process: str = "a") -> Sight:
    return Sight(value, at - 0.1, at, process)


FIRST, LOST, THIRD = Change(1, 1.0, 2.0), Change(2, 3.0), Change(3, 5.0, 6.0)


@pytest.mark.parametrize(
    ("sights", "clean"),
    [
        ([saw(None, 0.5), saw(1, 2.5), saw(2, 3.5), saw(3, 6.5)], True),
        # A broker may be behind, and another one may be behind more.
        ([saw(1, 9.0), saw(None, 9.0, "b")], True),
        # The change without an answer may never be done, or late and again.
        ([saw(1, 2.5), saw(3, 6.5), saw(2, 7.0), saw(3, 7.5)], True),
        ([saw(1, 2.5), saw(3, 6.5), saw(2, 7.0)], True),
        # Nobody had asked for it yet.
        ([saw(3, 4.0)], False),
        ([saw(4, 9.0)], False),
        # A broker goes back.
        ([saw(3, 6.5), saw(1, 7.0)], False),
        ([saw(1, 2.5), saw(None, 3.0)], False),
        ([saw(2, 7.0), saw(None, 7.5)], False),
        ([saw(3, 6.5), saw(1, 7.0, "b")], True),
    ],
)
def test_what_brokers_say_in_no_order_is_found(sights: list[Sight], clean: bool) -> None:
    assert names(tuned([FIRST, LOST, THIRD], sights, [])) == (set() if clean else {"linear_settings"})


@pytest.mark.parametrize(
    ("changes", "value", "clean"),
    [
        ([FIRST], 1, True),
        ([FIRST], None, False),
        ([FIRST, LOST], 1, True),
        ([FIRST, LOST], 2, True),
        ([FIRST, LOST, THIRD], 1, False),
        ([FIRST, LOST, THIRD], 2, True),
        ([FIRST, LOST, THIRD], 3, True),
        ([], None, True),
        ([LOST], None, True),
    ],
)
def test_an_acknowledged_change_that_is_lost_is_found(changes: list[Change], value: int | None, clean: bool) -> None:
    assert names(tuned(changes, [], [saw(value, 20.0)])) == (set() if clean else {"linear_settings"})


def tuned(changes: list[Change], sights: list[Sight], final: list[Sight]) -> History:
    before = Change(None, -math.inf, -math.inf)
    return History(tuning=TuningHistory({"a setting": Register([before, *changes], sights, final)}))


def test_brokers_that_do_not_keep_to_a_quota_are_found() -> None:
    assert names(History(tuning=TuningHistory(unlimited=["it took too much"]))) == {"linear_settings"}
    assert names(History(tuning=TuningHistory(let_through=["it did not wait"]))) == {"linear_settings"}


def test_a_tuned_world_counts_what_it_saw() -> None:
    register = Register([Change(None, -math.inf, -math.inf), FIRST, LOST])
    tally = TuningHistory({"a setting": register}, is_limited=True).tally()
    assert tally["tunings"] == 1
    assert tally["tuned worlds without a throttled producer"] == 1
    assert History().tally() == {}
