"""What a node wants done, and in which order."""

from __future__ import annotations

from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import LogEnd, Vote, VoteAnswer
from barnabas.raft.ready import Ready
from tests.raft.member_of_three import TWO, Member


def test_what_is_durable_comes_before_what_leaves_the_node() -> None:
    order = Ready._fields
    assert order.index("truncate_to") < order.index("batches") < order.index("flush") < order.index("messages")
    assert order.index("election") < order.index("messages") < order.index("answer")


def test_a_granted_vote_comes_with_the_election_state_to_save() -> None:
    member = Member(4)
    ready = member.node.vote(Vote(5, TWO, member.node.key, LogEnd(4, 1)))
    assert ready.election == ElectionState(5, -1, *TWO)
    assert ready.answer == VoteAnswer(5, is_granted=True)


def test_the_election_state_is_saved_once() -> None:
    member = Member(4)
    member.asked_by(TWO, 5, LogEnd(4, 1))
    assert member.node.tick().election is None
