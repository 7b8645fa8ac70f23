"""Seeds of a cluster run clean, the same seed runs the same; and its checkers find what they look for."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.simulation import checkers
from tests.simulation.cluster import run
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.history import Commit, History, LateCommit, Lease, OwnersRead, Partition, Refusal, StartSeen

pytestmark = pytest.mark.usefixtures("quiet")

P = Partition("t", 0)
NODES = 3
SEEDS = (8, 9, 10, 21, 66, 70, 75, 76, 107, 112, 991, 27781)
"""Small ones: a disk is lost, full or fails, power is cut, a node is isolated while partitions move, a way stays cut,
voters leave and join; and three aimed
faults: the controller is left alone, a leader dies with a new end, a coordinator moves and comes back. In 9 all machines lose their power,
and one disk has lost nothing; in 991 all have lost something, and a partition keeps a transaction that its coordinator has lost. In 27781 a
member gives up two partitions one after the other, and keeps its epoch meanwhile."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_run_clean(seed: int) -> None:
    assert run(seed, nodes=NODES).violations == {}


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [5, 7])
def test_larger_clusters_run_clean(nodes: int) -> None:
    """A node is killed just when it joins."""
    assert run(3, nodes=nodes).violations == {}


@pytest.mark.slow
def test_a_seed_replays_exactly() -> None:
    first, second = run(7, nodes=NODES), run(7, nodes=NODES)
    assert first.violations == {}
    assert first.history == second.history
    assert first.timeline.digest() == second.timeline.digest()


def test_seeds_mean_different_runs() -> None:
    plans = [ClusterPlan.draw(seed) for seed in range(50)]
    assert len({(plan.fault_kinds, plan.has_own_controller, plan.session_timeout_ms) for plan in plans}) > 25


def names(found: History) -> set[str]:
    return {name for name, check in checkers.ALL.items() if check(found)}


def test_replicas_that_differ_are_found() -> None:
    same = History(final_replicas={P: {"a": [(0, b"x"), (1, b"y")], "b": [(0, b"x"), (1, b"y")]}})
    assert names(same) == set()
    other = History(final_replicas={P: {"a": [(0, b"x"), (1, b"y")], "b": [(0, b"x"), (1, b"z")]}})
    assert names(other) == {"identical_replicas"}
    shorter = History(final_replicas={P: {"a": [(0, b"x"), (1, b"y")], "b": [(0, b"x")]}})
    assert names(shorter) == {"identical_replicas"}


def test_an_end_that_goes_back_is_found() -> None:
    assert names(History(ends_seen={("c", P): [1, 1, 3]})) == set()
    assert names(History(ends_seen={("c", P): [1, 3, 2]})) == {"monotonic_ends"}


def test_images_that_differ_are_found() -> None:
    assert names(History(images_seen={5: {"x": ["a", "b"]}})) == set()
    assert names(History(images_seen={5: {"x": ["a"], "y": ["b"]}})) == {"equal_images"}


def test_two_leaders_in_an_epoch_are_found() -> None:
    assert names(History(leaders_seen={(P, 1): {1, -1}, (P, 2): {2}})) == set()
    assert names(History(leaders_seen={(P, 1): {1, 2}})) == {"single_leader"}
    assert names(History(controllers_seen={1: {1, 2}})) == {"single_leader"}


def test_a_committed_offset_that_goes_back_is_found() -> None:
    commits = [Commit("g", P, 1, True, True), Commit("g", P, 2), Commit("g", P, 3)]
    final = {("g", P): 3}

    def read(*offsets: int) -> set[str]:
        return names(History(commits=commits, commits_read={("g", P): list(offsets)}, final_commits=final))

    assert read(-1, 1, 1, 3) == set()
    assert read(1, 3, 2, 2) == set(), "nobody was told that 2 is committed: it may come late"
    assert read(1, 2, 3, 2) == {"steady_commits"}, "2 came already"
    assert read(1, 3, 1) == {"steady_commits"}
    assert read(1, -1) == {"steady_commits"}


def test_what_a_reader_saw_and_is_not_there_is_found() -> None:
    log = History(final_bounds={P: (1, 3)}, final_logs={P: [(1, b"b"), (2, b"c")]}, trims_asked={P: 1})
    log.seen = {P: {0: b"a", 1: b"b", 2: b"c"}}
    assert names(log) == {"exactly_once_in_order"}, "nobody sent these; what stands before the start of the log is gone"
    log.seen[P][3] = b"d"
    assert "steady_reading" in names(log)
    log.power_cut(flushed=False)
    assert "steady_reading" not in names(log)


def test_a_leader_that_was_replaced_may_refuse() -> None:
    codes = (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert names(History(refusals=[Refusal("x0", code, False, True) for code in codes])) == set()
    lost = Refusal("x0", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, False, True)
    assert names(History(refusals=[lost])) == {"permitted_refusals"}


@pytest.mark.parametrize(
    ("code", "may_be_fenced", "clean"),
    [
        (ErrorCode.NOT_COORDINATOR, False, True),
        (ErrorCode.PRODUCER_FENCED, True, True),
        (ErrorCode.PRODUCER_FENCED, False, False),
        (ErrorCode.INVALID_TXN_STATE, True, False),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, True, False),
    ],
)
def test_a_refusal_without_a_cause_is_found(code: ErrorCode, may_be_fenced: bool, clean: bool) -> None:
    found = History(refusals=[Refusal("x0", code, may_be_fenced)])
    assert names(found) == (set() if clean else {"permitted_refusals"})


@pytest.mark.parametrize(("member", "since", "clean"), [("b", 3.0, True), ("b", 2.9, False), ("a", 2.9, True)])
def test_a_second_owner_is_found(member: str, since: float, clean: bool) -> None:
    key = (b"id", 0)
    others = [Lease("g", "b", (b"id", 1), 1.0, 9.0), Lease("h", "b", key, 1.0, 9.0)]
    leases = [Lease("g", "a", key, 1.0, 3.0), *others, Lease("g", member, key, since, 4.0)]
    assert names(History(leases=leases)) == (set() if clean else {"one_owner"})


def test_a_commit_of_a_former_owner_is_found() -> None:
    def answered(code: ErrorCode) -> set[str]:
        return names(History(late_commits=[LateCommit("a", (b"id", 0), 3, code)]))

    assert answered(ErrorCode.STALE_MEMBER_EPOCH) == set()
    assert answered(ErrorCode.NONE) == {"one_owner"}


@pytest.mark.parametrize(("found", "clean"), [(3, True), (4, True), (2, False), (-1, False)])
def test_an_owner_that_finds_less_than_was_promised_is_found(found: int, clean: bool) -> None:
    reads = [OwnersRead("g", "a", ("t", 0), 3, found)]
    assert names(History(owners_reads=reads)) == (set() if clean else {"one_owner"})


@pytest.mark.parametrize(
    ("start", "shown", "clean"), [(3, -1, True), (5, -1, True), (2, -1, False), (6, -1, False), (3, 2, False)]
)
def test_a_log_start_that_nobody_asked_for_is_found(start: int, shown: int, clean: bool) -> None:
    seen = [StartSeen(P, at_least=3, start=start, at_most=5, shown=shown)]
    assert names(History(starts_seen=seen)) == (set() if clean else {"log_start"})


def test_a_log_that_lost_its_first_records_is_found() -> None:
    lost = History(final_bounds={P: (1, 3)})
    assert names(lost) == {"log_start"}
    lost.trims_asked[P] = 1
    assert names(lost) == set()
    lost.trims_promised[P] = 2
    assert names(lost) == {"log_start"}


def test_what_does_not_go_on_is_found() -> None:
    assert names(History(stalls=["p0 gets no further than 3"])) == {"progress"}
