"""The role that a node takes at its start, and its deadlines."""

from __future__ import annotations

import pytest

from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import LogEnd
from barnabas.raft.roles import Role
from tests.raft.member_of_three import OBSERVER, THREE, TIMEOUTS, TWO, Member


@pytest.mark.parametrize(
    ("election", "role", "epoch"),
    [
        (ElectionState(), Role.UNATTACHED, 4),
        (ElectionState(3, leader_id=2), Role.UNATTACHED, 4),
        (ElectionState(6), Role.UNATTACHED, 6),
        (ElectionState(6, -1, *TWO), Role.UNATTACHED, 6),
        (ElectionState(6, leader_id=2), Role.FOLLOWER, 6),
        (ElectionState(6, leader_id=1), Role.RESIGNED, 6),
    ],
)
def test_the_role_that_the_last_run_left(election: ElectionState, role: Role, epoch: int) -> None:
    node = Member(4, election=election).node
    assert (node.role, node.epoch) == (role, epoch)


def test_a_vote_survives_the_process() -> None:
    member = Member(4, election=ElectionState(6, -1, *TWO))
    assert not member.asked_by(THREE, 6, LogEnd(5, 9)).is_granted
    assert member.asked_by(TWO, 6, LogEnd(5, 9)).is_granted


def test_a_vote_survives_that_the_elected_leader_is_heard() -> None:
    member = Member(4)
    assert member.asked_by(TWO, 6, LogEnd(5, 9)).is_granted
    member.follow(THREE, 6)
    assert member.node.quorum.election == ElectionState(6, 3, *TWO)


def test_a_voter_without_a_leader_waits_a_random_time() -> None:
    member = Member(4)
    deadlines = {Member(4).node.quorum.state.deadline_ms, member.node.quorum.state.deadline_ms}
    member.node.quorum.unattach(4, TWO)
    deadlines.add(member.node.quorum.state.deadline_ms)
    assert len(deadlines) > 1
    assert all(TIMEOUTS.election <= deadline < 2 * TIMEOUTS.election for deadline in deadlines)


def test_a_candidate_that_gets_no_vote_does_not_put_off_the_election() -> None:
    member = Member(4)
    deadline_ms = member.node.quorum.state.deadline_ms
    member.wait(500)
    assert not member.asked_by(TWO, 6, LogEnd(3, 9)).is_granted
    assert member.node.quorum.state.deadline_ms == deadline_ms
    assert member.asked_by(THREE, 7, LogEnd(5, 9)).is_granted
    assert member.node.quorum.state.deadline_ms >= 500 + TIMEOUTS.election


def test_an_observer_is_not_woken_to_stand() -> None:
    member = Member(4, key=OBSERVER)
    member.wait(10 * TIMEOUTS.election)
    assert member.node.role is Role.UNATTACHED


def test_the_epoch_never_goes_back() -> None:
    quorum = Member(4).node.quorum
    with pytest.raises(AssertionError, match="epoch would go back from 4 to 3"):
        quorum.unattach(3)


def test_two_leaders_of_one_epoch_are_a_bug() -> None:
    quorum = Member(4).node.quorum
    quorum.learn(4, 2)
    with pytest.raises(AssertionError, match="3 and 2 both lead 4"):
        quorum.learn(4, 3)
