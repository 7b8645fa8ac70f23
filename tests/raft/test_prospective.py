"""Which votes a prospective node grants, and what it does when its pre-vote is decided (KIP-996)."""

from __future__ import annotations

import pytest

from barnabas.raft.ballot import Ballot
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import LogEnd, VoteAnswer
from barnabas.raft.prospective import Prospective
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from tests.raft.member_of_three import THREE, TIMEOUTS, TWO, Member


def prospective(voted: ReplicaKey | None = None, leader_id: int = -1) -> Prospective:
    return Prospective(5, 0, Ballot([1, 2, 3], 1), voted, leader_id)


@pytest.mark.parametrize("up_to_date", [True, False])
def test_a_vote_needs_an_up_to_date_log(up_to_date: bool) -> None:
    for pre_vote in (True, False):
        assert prospective().grants(TWO, is_up_to_date=up_to_date, pre_vote=pre_vote) is up_to_date


def test_a_vote_is_given_once_and_not_beside_a_leader() -> None:
    assert prospective(voted=TWO).grants(TWO, is_up_to_date=True, pre_vote=False)
    assert not prospective(voted=THREE).grants(TWO, is_up_to_date=True, pre_vote=False)
    assert not prospective(leader_id=3).grants(TWO, is_up_to_date=True, pre_vote=False)


def test_the_vote_and_the_leader_of_the_epoch_are_not_forgotten() -> None:
    assert prospective(voted=TWO, leader_id=3).election == ElectionState(5, 3, *TWO)


def test_the_pre_vote_does_not_raise_the_epoch() -> None:
    member = Member(4)
    member.stand()
    assert [(each.to, each.request.epoch, each.request.pre_vote) for each in member.sent] == [
        (2, 4, True),
        (3, 4, True),
    ]  # type: ignore[union-attr]
    assert member.node.quorum.election == ElectionState(4)


def test_a_majority_that_would_grant_makes_a_candidate() -> None:
    member = Member(4)
    member.stand()
    member.grant()
    assert (member.node.role, member.node.epoch) == (Role.CANDIDATE, 5)


def test_a_node_that_nobody_would_elect_goes_back_to_its_leader() -> None:
    member = Member(4)
    member.follow(TWO, 4)
    member.wait(TIMEOUTS.fetch)
    assert member.node.role is Role.PROSPECTIVE
    for message in list(member.sent):
        member.answer(message, VoteAnswer(4, 2))
    assert (member.node.role, member.node.leader_id) == (Role.FOLLOWER, 2)


def test_a_vote_that_a_prospective_node_gives_is_durable_first() -> None:
    member = Member(4)
    member.stand()
    assert member.asked_by(TWO, 4, LogEnd(3, 9)).is_granted is False
    member.do(member.node.tick())
    assert member.asked_by(TWO, 5, LogEnd(4, 1)).is_granted
    assert member.node.quorum.election == ElectionState(5, -1, *TWO)
