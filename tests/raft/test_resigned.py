"""A leader that gave up its epoch."""

from __future__ import annotations

import pytest

from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import EndEpoch, EpochAnswer, LogEnd
from barnabas.raft.resigned import Resigned
from barnabas.raft.roles import Role
from tests.raft.member_of_three import THREE, TIMEOUTS, TWO, Member


@pytest.mark.parametrize("up_to_date", [True, False])
def test_it_votes_no_more_in_its_epoch(up_to_date: bool) -> None:
    state = Resigned(5, 1, 0)
    assert not state.grants(TWO, is_up_to_date=up_to_date, pre_vote=False)
    assert state.grants(TWO, is_up_to_date=up_to_date, pre_vote=True) is up_to_date
    assert state.election == ElectionState(5, leader_id=1)


def resigned() -> Member:
    member = Member(4)
    member.lead()
    member.flush()
    member.fetched(THREE, 2, 5)
    member.do(member.node.resign())
    return member


def test_the_others_hear_who_should_succeed() -> None:
    member = resigned()
    assert [message.to for message in member.sent] == [2, 3]
    assert member.sent[0].request == EndEpoch(5, 1, preferred=(THREE, TWO))


def test_those_that_have_not_answered_are_asked_again() -> None:
    member = resigned()
    two, three = member.sent
    member.do(member.node.answered(2, two.request, EpochAnswer(5, 1)))
    member.do(member.node.failed(three.request))
    assert member.sent == []
    member.wait(TIMEOUTS.retry_backoff)
    assert [message.to for message in member.sent] == [3]


def test_it_takes_part_in_the_next_epoch() -> None:
    member = resigned()
    assert not member.asked_by(TWO, 5, LogEnd(4, 9)).is_granted
    assert member.asked_by(TWO, 6, LogEnd(5, 2)).is_granted
    member = resigned()
    member.wait(2 * TIMEOUTS.election)
    assert (member.node.role, member.node.epoch) == (Role.UNATTACHED, 6)
