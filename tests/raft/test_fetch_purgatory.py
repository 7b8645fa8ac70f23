"""Waits for news, and the end of the time."""

from __future__ import annotations

from barnabas.raft.fetch_purgatory import FetchPurgatory
from barnabas.steps import start
from tests.coordinator.virtual_loop import VirtualLoop


def test_news_wake_all_in_a_later_turn() -> None:
    loop = VirtualLoop()
    purgatory = FetchPurgatory(loop)
    waits = [start(purgatory.wait(500), loop) for _ in range(2)]
    assert len(purgatory) == 2
    purgatory.wake()
    assert not any(wait.done() for wait in waits)
    loop.run_ready()
    assert [wait.result() for wait in waits] == [True, True]
    assert len(purgatory) == 0


def test_the_time_is_over() -> None:
    loop = VirtualLoop()
    purgatory = FetchPurgatory(loop)
    wait = start(purgatory.wait(500), loop)
    loop.advance(499)
    assert not wait.done()
    loop.advance(1)
    assert wait.result() is False
    assert repr(purgatory) == "<FetchPurgatory waiting=0>"


def test_without_time_there_is_no_wait() -> None:
    loop = VirtualLoop()
    assert start(FetchPurgatory(loop).wait(0), loop).result() is False


def test_one_who_is_cancelled_waits_no_more() -> None:
    loop = VirtualLoop()
    purgatory = FetchPurgatory(loop)
    wait = start(purgatory.wait(500), loop)
    wait.cancel()
    loop.run_ready()
    assert wait.cancelled()
    assert len(purgatory) == 0
    purgatory.wake()
