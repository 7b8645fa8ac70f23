"""Runs and batches in flight: states, transitions that are committed or rolled back, and splits."""

from __future__ import annotations

import pytest

from barnabas.share.in_flight import NO_MEMBER, InFlightBatch, RecordState, Run, Transition

A, ACQ, ACK, ING, X = (
    RecordState.AVAILABLE,
    RecordState.ACQUIRED,
    RecordState.ACKNOWLEDGED,
    RecordState.ARCHIVING,
    RecordState.ARCHIVED,
)


def acquired(first: int = 0, last: int = 9, deliveries: int = 1) -> Run:
    run = Run(first, last, A, deliveries - 1)
    run.acquire("m", 30.0)
    return run


def test_an_acquisition_is_one_more_delivery_with_owner_and_lock() -> None:
    run = acquired(deliveries=3)
    assert (run.state, run.delivery_count, run.member_id, run.lock_until) == (ACQ, 3, "m", 30.0)
    assert not run.is_available


@pytest.mark.parametrize(
    ("wanted", "deliveries", "dead_letters", "state"),
    [
        (A, 1, False, A),
        (A, 2, False, X),
        (A, 3, True, ING),
        (A, 1, True, A),
        (ACK, 2, True, ACK),
        (X, 2, True, X),
    ],
)
def test_a_run_at_its_delivery_limit_does_not_become_available(
    wanted: RecordState, deliveries: int, dead_letters: bool, state: RecordState
) -> None:
    run = acquired(deliveries=deliveries)
    assert run.leave(wanted, 2, dead_letters) is state
    assert (run.state, run.member_id) == (state, NO_MEMBER)


def test_an_archived_run_has_neither_owner_nor_lock() -> None:
    run = acquired()
    run.archive()
    assert (run.state, run.member_id, run.lock_until, run.is_final) == (X, NO_MEMBER, None, True)


def in_transition(deliveries: int = 1) -> tuple[Run, Transition]:
    run = acquired(deliveries=deliveries)
    run.leave(A, 5, False)
    return run, Transition(run, "m", 2)


def test_a_run_in_transition_is_not_available_until_it_is_committed() -> None:
    run, transition = in_transition()
    assert run.state is A
    assert not run.is_available
    transition.commit()
    assert run.is_available
    assert run.lock_until is None


def test_a_rollback_gives_the_run_back_to_its_owner_while_the_lock_lasts() -> None:
    run, transition = in_transition()
    transition.roll_back(29.9)
    assert (run.state, run.member_id, run.lock_until, run.transition) == (ACQ, "m", 30.0, None)


@pytest.mark.parametrize(("deliveries", "state"), [(1, A), (2, X)])
def test_a_rollback_after_the_lock_has_ended_releases_the_run(deliveries: int, state: RecordState) -> None:
    run, transition = in_transition(deliveries)
    transition.roll_back(30.0)
    assert (run.state, run.member_id, run.lock_until) == (state, NO_MEMBER, None)


def test_a_rollback_does_not_revive_an_archived_run() -> None:
    run, transition = in_transition()
    run.archive()
    transition.roll_back(0.0)
    assert (run.state, run.member_id, run.lock_until, run.transition) == (X, NO_MEMBER, None, None)


def test_a_split_keeps_state_owner_lock_and_transition() -> None:
    run, transition = in_transition()
    run.is_final = True
    batch = InFlightBatch(run)
    batch.split(0, 4)
    one, two = batch.runs
    assert (one.first, one.last, two.first, two.last) == (0, 3, 4, 9)
    assert (two.state, two.delivery_count, two.lock_until, two.is_final) == (A, 1, 30.0, True)
    assert one.transition is two.transition is transition
    transition.commit()
    assert one.transition is two.transition is None


@pytest.mark.parametrize(
    ("first", "last", "cut", "runs"),
    [
        (0, 9, [(0, 9)], [(0, 9)]),
        (0, 3, [(0, 3)], [(0, 3), (4, 9)]),
        (4, 9, [(4, 9)], [(0, 3), (4, 9)]),
        (4, 6, [(4, 6)], [(0, 3), (4, 6), (7, 9)]),
        (9, 20, [(9, 9)], [(0, 8), (9, 9)]),
        (10, 20, [], [(0, 9)]),
    ],
)
def test_a_cut_splits_at_the_ends_of_its_range(
    first: int, last: int, cut: list[tuple[int, int]], runs: list[tuple[int, int]]
) -> None:
    batch = InFlightBatch(acquired())
    assert [(run.first, run.last) for run in batch.cut(first, last)] == cut
    assert [(run.first, run.last) for run in batch.runs] == runs


def test_a_caller_that_stops_a_cut_early_splits_fewer_runs() -> None:
    batch = InFlightBatch(acquired())
    batch.split(0, 5)
    next(batch.cut(2, 7))
    assert [(run.first, run.last) for run in batch.runs] == [(0, 1), (2, 4), (5, 9)]
