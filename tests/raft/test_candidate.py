"""Which votes a candidate grants, and how its election ends."""

from __future__ import annotations

from barnabas.raft.ballot import Ballot
from barnabas.raft.candidate import Candidate
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import LogEnd, VoteAnswer
from barnabas.raft.roles import Role
from tests.raft.member_of_three import ONE, TIMEOUTS, TWO, Member


def standing() -> Member:
    member = Member(4)
    member.stand()
    member.grant()
    assert member.node.role is Role.CANDIDATE
    return member


def test_a_candidate_has_voted_for_itself() -> None:
    state = Candidate(5, 0, Ballot([1, 2, 3], 1), ONE)
    assert state.election == ElectionState(5, -1, *ONE)
    assert not state.grants(TWO, is_up_to_date=True, pre_vote=False)
    assert state.grants(TWO, is_up_to_date=True, pre_vote=True)
    assert not state.grants(TWO, is_up_to_date=False, pre_vote=True)


def test_the_own_vote_is_durable_before_the_others_are_asked() -> None:
    member = Member(4)
    member.stand()
    ready = member.grant()
    assert ready.election == ElectionState(5, -1, *ONE)
    assert [message.to for message in ready.messages] == [2, 3]


def test_a_higher_epoch_ends_the_candidacy() -> None:
    member = standing()
    assert member.asked_by(TWO, 6, LogEnd(4, 1)).is_granted
    assert (member.node.role, member.node.epoch) == (Role.UNATTACHED, 6)


def test_a_pre_vote_that_comes_late_is_no_vote() -> None:
    member = Member(4)
    member.stand()
    late = member.sent[1]
    member.grant()
    member.answer(late, VoteAnswer(5, is_granted=True))
    assert member.node.role is Role.CANDIDATE


def test_a_candidate_that_lost_waits_and_asks_again_without_raising_the_epoch() -> None:
    member = standing()
    for message in list(member.sent):
        member.answer(message, VoteAnswer(5))
    assert member.node.role is Role.CANDIDATE
    assert member.node.wake_at_ms is not None
    assert member.node.wake_at_ms < TIMEOUTS.election
    member.wait(TIMEOUTS.election)
    assert (member.node.role, member.node.epoch) == (Role.PROSPECTIVE, 5)


def test_a_candidate_that_nobody_answers_asks_again_at_the_deadline() -> None:
    member = standing()
    member.wait(2 * TIMEOUTS.election)
    assert (member.node.role, member.node.epoch) == (Role.PROSPECTIVE, 5)
    assert member.node.quorum.election == ElectionState(5, -1, *ONE)
