"""Which votes a follower grants, and when it gives its leader up."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.election_state import ElectionState
from barnabas.raft.follower import Follower
from barnabas.raft.peer_messages import EndEpoch, Fetched, LogEnd, Vote
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from tests.raft.member_of_three import OBSERVER, ONE, THREE, TIMEOUTS, TWO, Member


@pytest.mark.parametrize(("up_to_date", "has_fetched"), [(True, False), (True, True), (False, False)])
def test_a_follower_that_hears_its_leader_rejects_pre_votes(up_to_date: bool, has_fetched: bool) -> None:
    state = Follower(5, 2, 0, has_fetched=has_fetched)
    assert state.grants(THREE, is_up_to_date=up_to_date, pre_vote=True) is (up_to_date and not has_fetched)


def test_a_follower_grants_no_new_vote() -> None:
    assert not Follower(5, 2, 0).grants(THREE, is_up_to_date=True, pre_vote=False)
    assert Follower(5, 2, 0, voted=THREE).grants(THREE, is_up_to_date=True, pre_vote=False)
    assert not Follower(5, 2, 0, voted=TWO).grants(THREE, is_up_to_date=True, pre_vote=False)


def test_the_vote_of_the_epoch_is_kept_beside_the_leader() -> None:
    assert Follower(5, 2, 0, voted=THREE).election == ElectionState(5, 2, *THREE)


def test_an_answer_of_the_leader_moves_the_deadline() -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    member.wait(TIMEOUTS.fetch - 1)
    assert member.node.role is Role.FOLLOWER
    member.answer(fetch, Fetched(4, 2))
    member.wait(TIMEOUTS.fetch - 1)
    assert member.node.role is Role.FOLLOWER
    member.wait(1)
    assert member.node.role is Role.PROSPECTIVE


def test_an_observer_never_stands() -> None:
    member = Member(4, key=OBSERVER)
    member.follow(TWO, 4)
    member.wait(TIMEOUTS.fetch)
    assert member.node.role is Role.UNATTACHED


@pytest.mark.parametrize(
    ("preferred", "waits_ms"),
    [
        ((ONE, THREE), 0),
        ((THREE, ONE), 40),
        ((THREE,), 40),
        ((), 0),
        ((ReplicaKey(1, b"x" * 16),), 40),
        ((ReplicaKey(1),), 0),
    ],
)
def test_the_first_successor_stands_at_once_and_the_others_later(
    preferred: tuple[ReplicaKey, ...], waits_ms: int
) -> None:
    member = Member(4)
    member.follow(TWO, 4)
    ready = member.do(member.node.end_epoch(EndEpoch(4, 2, preferred)))
    assert ready.answer is not None
    assert ready.answer.epoch == 4
    if waits_ms:
        member.wait(waits_ms - 1)
        assert member.node.role is Role.FOLLOWER
        member.wait(1)
    assert member.node.role is Role.PROSPECTIVE


def test_a_leader_that_refuses_twice_in_a_row_has_died() -> None:
    member = Member(1)
    fetch = member.follow(TWO, 2)
    member.do(member.node.failed(fetch.request, is_refused=True))
    assert member.node.role is Role.FOLLOWER
    member.wait(TIMEOUTS.retry_backoff)
    (fetch,) = member.sent
    member.do(member.node.failed(fetch.request, is_refused=True))
    assert member.node.role is Role.PROSPECTIVE
    assert [type(each.request) for each in member.sent] == [Vote, Vote]


def test_the_followers_of_a_dead_leader_stand_one_after_the_other() -> None:
    member = Member(1, key=THREE)
    fetch = member.follow(TWO, 2)
    member.answer(fetch, Fetched(2, 2, high_watermark=1))
    (fetch,) = member.sent
    assert member.asked_by(ONE, 2, LogEnd(1, 1), pre_vote=True).is_granted is False
    member.do(member.node.failed(fetch.request, is_refused=True))
    member.wait(TIMEOUTS.retry_backoff)
    member.do(member.node.failed(member.sent[0].request, is_refused=True))
    assert member.node.role is Role.FOLLOWER
    # It knows as much as the first one, and does not stand in its way.
    assert member.asked_by(ONE, 2, LogEnd(1, 1), pre_vote=True).is_granted
    member.wait(100)
    assert member.node.role is Role.PROSPECTIVE


@pytest.mark.parametrize("between", ["an answer", "a lost connection"])
def test_refusals_count_only_in_a_row(between: str) -> None:
    member = Member(1)
    fetch = member.follow(TWO, 2)
    for kind in ("a refusal", between, "a refusal"):
        if kind == "an answer":
            member.answer(fetch, Fetched(2, 2, high_watermark=1))
        else:
            member.do(member.node.failed(fetch.request, is_refused=kind == "a refusal"))
            member.wait(TIMEOUTS.retry_backoff)
        (fetch,) = member.sent
    assert member.node.role is Role.FOLLOWER


def test_an_observer_never_stands_for_election() -> None:
    member = Member(1, key=OBSERVER)
    member.follow(TWO, 2)
    for _ in range(5):
        for each in member.sent:
            member.do(member.node.failed(each.request, is_refused=True))
        member.wait(TIMEOUTS.retry_backoff)
    assert member.node.role is Role.FOLLOWER


def test_an_observer_whose_leader_does_not_answer_asks_another_node_and_the_leader_in_turn() -> None:
    member = Member(4, key=OBSERVER)
    fetch = member.follow(TWO, 4)
    asked = []
    for _ in range(4):
        member.do(member.node.failed(fetch.request))
        if not member.sent:
            member.wait(TIMEOUTS.retry_backoff)
        (fetch,) = member.sent
        asked.append(fetch.to)
    assert asked[1] == asked[3] == 2
    member.do(member.node.failed(fetch.request))
    (fetch,) = member.sent
    member.answer(fetch, Fetched(5, 3, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (member.node.leader_id, member.sent[0].to) == (3, 3)


def test_a_voter_whose_leader_does_not_answer_waits_for_the_election() -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    member.do(member.node.failed(fetch.request))
    member.wait(TIMEOUTS.retry_backoff)
    assert [each.to for each in member.sent] == [2]
