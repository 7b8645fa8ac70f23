"""How far a node believes a peer that names a higher epoch."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import ElectionState
from barnabas.raft.epochs import ANSWER_AHEAD_MAX, LAST_EPOCH, REQUEST_AHEAD_MAX, is_credible
from barnabas.raft.peer_messages import BeginEpoch, EndEpoch, EpochAnswer, Fetched, FetchFrom, LogEnd, Vote, VoteAnswer
from barnabas.raft.roles import Role
from tests.raft.member_of_three import ONE, THREE, TWO, Member, batch

HIGHEST = (1 << 31) - 1


@pytest.mark.parametrize(
    ("epoch", "own", "credible"),
    [
        (0, -1, True),
        (1_000, -1, True),
        (1_001, 0, False),
        (1_005, 5, True),
        (1_006, 5, False),
        (LAST_EPOCH, LAST_EPOCH - 5, True),
        (HIGHEST, LAST_EPOCH, False),
    ],
)
def test_a_step_of_a_thousand_and_never_to_the_end(epoch: int, own: int, credible: bool) -> None:
    assert is_credible(epoch, own, 1_000) is credible


@pytest.mark.parametrize("epoch", [HIGHEST, LAST_EPOCH, 5 + REQUEST_AHEAD_MAX + 1])
@pytest.mark.parametrize(
    "ask",
    [
        lambda node, epoch: node.begin_epoch(BeginEpoch(epoch, 2, ONE)),
        lambda node, epoch: node.end_epoch(EndEpoch(epoch, 2)),
        lambda node, epoch: node.vote(Vote(epoch, TWO, ONE, LogEnd(4, 9))),
        lambda node, epoch: node.vote(Vote(epoch, TWO, ONE, LogEnd(4, 9), pre_vote=True)),
    ],
    ids=["begin", "end", "vote", "pre-vote"],
)
def test_one_request_does_not_end_all_elections(ask: object, epoch: int) -> None:
    """Each of them left the quorum without a leader for ever."""
    member = Member(4)
    member.lead()
    answer = member.do(ask(member.node, epoch)).answer  # type: ignore[operator]
    assert answer is not None
    assert (answer.error, answer.epoch, member.node.is_leader) == (ErrorCode.INVALID_REQUEST, 5, True)


@pytest.mark.parametrize("epoch", [HIGHEST, 4 + ANSWER_AHEAD_MAX + 1])
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH])
def test_an_answer_does_not_either(epoch: int, error: ErrorCode) -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    member.answer(fetch, Fetched(epoch, 3, error=error))
    assert (member.node.epoch, member.node.leader_id) == (4, 2)
    assert member.node.wake_at_ms == member.now_ms + 20, "it asks again after the backoff"


def test_an_answer_that_is_further_ahead_than_a_request_may_be_is_believed() -> None:
    """A node with a new disk learns so the epoch of an old quorum."""
    member = Member()
    member.wait(2_000)
    assert member.node.role is Role.PROSPECTIVE
    member.answer(member.sent[0], VoteAnswer(1_000_000, 3, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (member.node.epoch, member.node.leader_id, member.sent[0].to) == (1_000_000, 3, 3)


def test_a_batch_of_a_later_epoch_than_its_leaders_is_not_taken() -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    ready = member.answer(fetch, Fetched(4, 2, batches=(batch(1, HIGHEST),)))
    assert (ready.batches, member.node.end_offset) == ((), 1)


def test_a_fetch_of_the_last_epoch_changes_nothing() -> None:
    member = Member(4)
    member.lead()
    answer = member.do(member.node.fetch(FetchFrom(HIGHEST, THREE, 1, 4))).answer
    assert isinstance(answer, Fetched)
    assert (answer.error, member.node.epoch) == (ErrorCode.UNKNOWN_LEADER_EPOCH, 5)


@pytest.mark.parametrize("epoch", [LAST_EPOCH, HIGHEST])
def test_a_node_in_the_last_epoch_asks_for_votes_and_never_raises_it(epoch: int) -> None:
    """Its files may be from an earlier release; the next epoch would not fit the message."""
    member = Member(4, election=ElectionState(epoch))
    roles = []
    for _ in range(10):
        member.wait(1_000)
        if member.node.role is Role.PROSPECTIVE:
            roles.append(member.node.role)
            member.grant()
        assert member.node.role in (Role.UNATTACHED, Role.PROSPECTIVE)
        assert member.node.epoch == epoch
    assert len(roles) > 2, "it goes on asking: another node may lead this epoch"


def test_the_leader_of_the_last_epoch_may_still_give_it_up() -> None:
    member = Member(4, election=ElectionState(LAST_EPOCH, 1))
    assert member.node.role is Role.RESIGNED
    member.wait(2_000)
    assert (member.node.role, member.node.epoch) == (Role.UNATTACHED, LAST_EPOCH)
    assert EpochAnswer(LAST_EPOCH).error is ErrorCode.NONE
