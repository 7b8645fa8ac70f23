"""Counting the requests that a fault meets, in one process and in several."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from barnabas.embedded.fault_tickets import FaultTickets, InjectedFault, OwnTickets, Tickets


def both(folder: Path, limit: int) -> list[Tickets]:
    return [OwnTickets(limit), FaultTickets(str(folder / "tickets"), limit)]


def test_so_many_are_valid(tmp_path: Path) -> None:
    for tickets in both(tmp_path, 2):
        assert (tickets.taken, tickets.is_used_up) == (0, False)
        assert [tickets.take() for _ in range(4)] == [True, True, False, False]
        assert (tickets.taken, tickets.is_used_up) == (2, True)
        fault = InjectedFault(1, {"kind": "fail"}, tickets)
        assert fault.hits == 2
        assert repr(fault) == "<barnabas.InjectedFault id=1 kind=fail hits=2>"


def test_without_a_limit_all_are(tmp_path: Path) -> None:
    for tickets in both(tmp_path, -1):
        assert all(tickets.take() for _ in range(10))
        assert (tickets.taken, tickets.is_used_up) == (10, False)


def test_the_first_ones_are_passed_over(tmp_path: Path) -> None:
    for tickets in (OwnTickets(2, nth=3), FaultTickets(str(tmp_path / "tickets"), 2, nth=3)):
        assert [tickets.take() for _ in range(6)] == [False, False, True, True, False, False]
        assert (tickets.taken, tickets.is_used_up) == (2, True)
    for tickets in (OwnTickets(-1, nth=2), FaultTickets(str(tmp_path / "all"), -1, nth=2)):
        assert [tickets.take() for _ in range(3)] == [False, True, True]
        assert (tickets.taken, tickets.is_used_up) == (2, False)


def test_two_who_share_a_file_share_the_tickets(tmp_path: Path) -> None:
    first, second = (FaultTickets(str(tmp_path / "tickets"), 3) for _ in range(2))
    assert [first.take(), second.take(), first.take(), second.take(), first.take()] == [True] * 3 + [False] * 2
    assert first.taken == second.taken == 3


def test_a_folder_that_is_gone_has_no_tickets(tmp_path: Path) -> None:
    tickets = FaultTickets(str(tmp_path / "gone" / "tickets"), 1)
    assert not tickets.take()
    assert tickets.is_used_up


def _take_many(path: str, start: object, valid: object) -> None:
    tickets = FaultTickets(path, 500)
    start.wait()  # type: ignore[attr-defined]
    valid.put(sum(tickets.take() for _ in range(400)))  # type: ignore[attr-defined]


@pytest.mark.slow
def test_no_two_processes_get_the_same(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    start, valid = context.Barrier(3), context.Queue()
    takers = [
        context.Process(target=_take_many, args=(str(tmp_path / "tickets"), start, valid), daemon=True)
        for _ in range(3)
    ]
    for taker in takers:
        taker.start()
    assert sum(valid.get(timeout=60) for _ in takers) == 500
    for taker in takers:
        taker.join(60)
