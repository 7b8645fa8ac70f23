"""One request under way to each peer."""

from __future__ import annotations

from barnabas.raft.peer_messages import BeginEpoch
from barnabas.raft.request_manager import RequestManager
from tests.raft.member_of_three import TWO, Member

FIRST, SECOND = BeginEpoch(5, 1, TWO), BeginEpoch(5, 1, TWO)


def sent() -> RequestManager:
    manager = RequestManager(backoff_ms=20, timeout_ms=500)
    manager.sent(2, FIRST, 100)
    return manager


def test_a_peer_waits_for_its_answer_and_another_does_not() -> None:
    manager = sent()
    assert (manager.ready_at(2, 100), manager.ready_at(3, 100)) == (600, 100)
    assert repr(manager) == "<RequestManager under_way=[2] waits=[2]>"


def test_the_next_request_follows_an_answer_at_once_and_a_failure_later() -> None:
    manager = sent()
    assert manager.ended(FIRST, 110, is_ok=True)
    assert manager.ready_at(2, 110) == 110
    manager = sent()
    assert manager.ended(FIRST, 110, is_ok=False)
    assert manager.ready_at(2, 110) == 130


def test_an_answer_to_a_request_that_was_given_up_is_dropped() -> None:
    manager = sent()
    manager.sent(2, SECOND, 600)
    assert not manager.ended(FIRST, 610, is_ok=True)
    assert manager.ended(SECOND, 610, is_ok=True)
    assert not manager.ended(SECOND, 611, is_ok=True)


def test_another_role_gives_up_every_request() -> None:
    manager = sent()
    manager.reset()
    assert not manager.ended(FIRST, 110, is_ok=True)
    assert manager.ready_at(2, 110) == 110


def test_a_node_does_not_ask_a_peer_twice_at_once() -> None:
    member = Member(4)
    member.follow(TWO, 4)
    member.wait(100)
    assert member.sent == []
