"""Seeds with crashes run clean, the same seed runs the same, and each deliberate bug is caught.

The default suite plays a few dozen seeds; `make simulate` plays as many as it is told.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.turns import TURN, spend
from tests.simulation import checkers
from tests.simulation.deliberate_bugs import BUGS
from tests.simulation.history import Batch, Commit, History, Partition, Transaction
from tests.simulation.one_broker import Plan, run

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS_PER_TEST = 5
SEEDS_FOR_A_BUG = 300
FOUND_BEFORE = {
    "commit_before_the_flush": (43,),
    "flush_without_sync": (28,),
    "forget_what_was_decided": (24,),
    "give_up_when_overtaken": (108,),
    "recover_without_checksums": (43,),
}
"""Seeds that found a bug which few seeds find; they are played first."""
P = Partition("t", 0)
X0, X1 = Partition("x", 0), Partition("x", 1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 50, SEEDS_PER_TEST))
def test_seeds_run_clean(first: int) -> None:
    results = [run(seed) for seed in range(first, first + SEEDS_PER_TEST)]
    assert {r.plan.seed: r.violations for r in results if not r.passed} == {}


@pytest.mark.slow
def test_a_seed_replays_exactly() -> None:
    first = run(11)
    spend(TURN - 1)  # What was spent before a run must not matter.
    second = run(11)
    assert first.history == second.history
    assert first.timeline.digest() == second.timeline.digest()


@pytest.mark.slow
@pytest.mark.parametrize("bug", sorted(BUGS))
def test_each_deliberate_bug_is_caught(bug: str) -> None:
    for seed in (*FOUND_BEFORE.get(bug, ()), *range(SEEDS_FOR_A_BUG)):
        if not run(seed, bug).passed:
            return
    pytest.fail(f"{bug} went unnoticed in {SEEDS_FOR_A_BUG} seeds")


def test_seeds_mean_different_runs() -> None:
    plans = [Plan.draw(seed) for seed in range(50)]
    assert len({(p.lives, p.power_cuts, p.flush_every_write, p.producers) for p in plans}) > 10


# --- the checkers themselves, on histories that contain what they look for ------------------------------------------------


def history(records: list[bytes], *batches: Batch, end: int | None = None) -> History:
    found = History(batches=list(batches))
    found.final_logs[P] = list(enumerate(records))
    found.final_bounds[P] = (0, len(records) if end is None else end)
    return found


def batch(*values: bytes, at: int = -1, survives: bool = True) -> Batch:
    acknowledged = 1.0 if at >= 0 else None
    return Batch("p", P, list(values), acknowledged, at, survives and at >= 0)


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


def test_a_clean_history_passes() -> None:
    assert names(history([b"a", b"b", b"c"], batch(b"a", b"b", at=0), batch(b"c", at=2))) == set()


def test_a_lost_record_is_found() -> None:
    assert names(history([b"a"], batch(b"a", at=0), batch(b"b", at=1))) == {"durability"}


def test_an_unflushed_record_may_be_lost_by_a_power_cut() -> None:
    lost = history([b"a"], batch(b"a", at=0), batch(b"b", at=1))
    lost.power_cut(flushed=False)
    assert names(lost) == set()


def test_a_record_at_another_offset_is_found() -> None:
    assert "durability" in names(history([b"b", b"a"], batch(b"a", at=0), batch(b"b", at=1)))


def test_a_doubled_record_is_found() -> None:
    assert names(history([b"a", b"a"], batch(b"a", at=0))) == {"exactly_once_in_order"}


def test_records_out_of_order_are_found() -> None:
    assert names(history([b"b", b"a"], batch(b"a"), batch(b"b"))) == {"exactly_once_in_order"}


def test_a_record_nobody_sent_is_found() -> None:
    assert names(history([b"?"])) == {"exactly_once_in_order"}


def test_a_hole_in_the_offsets_is_found() -> None:
    assert names(history([b"a"], batch(b"a", at=0), end=2)) == {"dense_offsets"}


def transactional(*seen: Partition, offset: int = 1, **fields: Any) -> History:
    """A transaction over both partitions of x with offset 1, seen where it says."""
    x0, x1 = Partition("x", 0), Partition("x", 1)
    found = History(transactions=[Transaction("x0", 1, [x0, x1], True, True, True)])
    for name, value in fields.items():
        setattr(found.transactions[0], name, value)
    found.final_committed = {each: [b"x0:1"] * seen.count(each) for each in (x0, x1)}
    found.final_transactional_offsets = {"x0": offset}
    return found


@pytest.mark.parametrize(
    ("seen", "offset", "fields", "clean"),
    [
        ((X0, X1), 1, {}, True),
        ((X0,), 1, {}, False),
        ((), -1, {}, False),
        ((), -1, {"acknowledged": False}, True),
        ((X0, X1), 1, {"acknowledged": False}, True),
        ((X0, X1), 1, {"is_commit": False}, False),
        ((X0, X1), 1, {"is_commit": None, "acknowledged": False}, False),
        ((), -1, {"is_commit": False}, True),
        ((X0, X1), -1, {}, False),
        ((X0, X0, X1), 1, {}, False),
    ],
)
def test_what_is_wrong_with_transactions_is_found(
    seen: tuple[Partition, ...], offset: int, fields: dict[str, Any], clean: bool
) -> None:
    found = transactional(*seen, offset=offset, **fields)
    assert names(found) == (set() if clean else {"whole_transactions"})
    found.power_cut(flushed=False)
    assert names(found) == set()


def test_a_record_that_was_read_too_early_is_found() -> None:
    found = transactional(offset=-1, is_commit=False)
    found.seen_committed = {X0: {b"x0:1"}}
    assert names(found) == {"whole_transactions"}


def test_a_partition_that_is_held_back_is_found() -> None:
    assert names(History(held_back=["x-0 is stable up to 1 of 2"])) == {"whole_transactions"}


@pytest.mark.parametrize(("actual", "wrong"), [(1, True), (2, False), (3, False), (None, True)])
def test_a_lost_commit_is_found(actual: int | None, wrong: bool) -> None:
    found = History(commits=[Commit("g", P, 1, True, True), Commit("g", P, 2, True, True), Commit("g", P, 3)])
    if actual is not None:
        found.final_commits["g", P] = actual
    assert names(found) == ({"committed_offsets"} if wrong else set())


def test_a_lost_topic_is_found() -> None:
    assert names(History(created_topics=["a", "b"], final_topics={"a"})) == {"created_topics"}
    assert names(History(created_topics=["a", "b"], final_topics={"a", "b", "c"})) == set()


def test_a_start_that_fails_is_found() -> None:
    assert names(History(recoveries=[(0.1, "OSError()")])) == {"recovery"}
