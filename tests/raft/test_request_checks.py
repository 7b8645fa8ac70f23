"""Which error a request has for a node of a role; `test_peer_messages` asks through the node."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.peer_messages import BeginEpoch, FetchFrom, LogEnd, Vote
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_checks import (
    error_of_end,
    error_of_epoch,
    error_of_fetch,
    error_of_leader,
    error_of_leadership,
    error_of_voter,
)
from tests.raft.member_of_three import ONE, THREE, TWO, Member


def leader() -> Member:
    member = Member(4)
    member.lead()
    assert member.node.epoch == 5
    return member


def test_an_older_epoch_is_fenced_and_no_node_has_a_negative_id() -> None:
    quorum = leader().node.quorum
    assert error_of_epoch(quorum, 4, 2) is ErrorCode.FENCED_LEADER_EPOCH
    assert error_of_epoch(quorum, 5, 2) is ErrorCode.NONE
    assert error_of_epoch(quorum, 6, -1) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("end", "pre_vote", "is_possible"),
    [
        ((4, 9), False, True),
        ((5, 9), False, False),
        ((5, 9), True, True),
        ((-1, 0), True, False),
        ((4, -1), True, False),
    ],
)
def test_a_candidates_log_ends_before_its_epoch(end: tuple[int, int], pre_vote: bool, is_possible: bool) -> None:
    error = error_of_end(Vote(5, TWO, ONE, LogEnd(*end), pre_vote))
    assert error is (ErrorCode.NONE if is_possible else ErrorCode.INVALID_REQUEST)


def test_a_request_is_for_the_voter_that_it_names() -> None:
    assert error_of_voter(ONE, ReplicaKey(-1)) is ErrorCode.NONE
    assert error_of_voter(ONE, ReplicaKey(1)) is ErrorCode.NONE
    assert error_of_voter(ONE, TWO) is ErrorCode.INVALID_VOTER_KEY


def test_an_epoch_has_one_leader() -> None:
    member = Member(4)
    member.follow(TWO, 4)
    quorum = member.node.quorum
    assert error_of_leader(quorum, BeginEpoch(4, 2, ONE)) is ErrorCode.NONE
    assert error_of_leader(quorum, BeginEpoch(4, 3, ONE)) is ErrorCode.INVALID_REQUEST
    assert error_of_leader(quorum, BeginEpoch(5, 3, ONE)) is ErrorCode.NONE


def test_only_the_leader_of_the_epoch_answers() -> None:
    quorum = leader().node.quorum
    assert error_of_leadership(quorum, 4) is ErrorCode.FENCED_LEADER_EPOCH
    assert error_of_leadership(quorum, 6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error_of_leadership(quorum, 5) is ErrorCode.NONE
    assert error_of_leadership(Member(4).node.quorum, 4) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_fetch_of_the_leaders_own_id_is_rejected() -> None:
    quorum = leader().node.quorum
    assert error_of_fetch(quorum, FetchFrom(5, THREE, 1, 4)) is ErrorCode.NONE
    assert error_of_fetch(quorum, FetchFrom(5, ONE, 1, 4)) is ErrorCode.INVALID_REQUEST
    assert error_of_fetch(quorum, FetchFrom(5, THREE, -1, 4)) is ErrorCode.INVALID_REQUEST
