"""How a node answers each request of a peer, and what it makes of each answer."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.peer_messages import (
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    FetchSnapshot,
    LogEnd,
    Vote,
    VoteAnswer,
)
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.seams import SnapshotId
from tests.raft.member_of_three import OBSERVER, ONE, THREE, TIMEOUTS, TWO, VOTERS, Member, batch

OTHER_DISK = ReplicaKey(1, b"other disk".ljust(16))
NOBODY = ReplicaKey(-1, TWO.directory_id)


def test_log_ends_are_in_the_order_of_raft() -> None:
    assert LogEnd(3, 1) > LogEnd(2, 9) > LogEnd(2, 8)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Vote(3, TWO, ONE, LogEnd(2, 5)), ErrorCode.FENCED_LEADER_EPOCH),
        (Vote(5, NOBODY, ONE, LogEnd(4, 5)), ErrorCode.INVALID_REQUEST),
        (Vote(5, TWO, OTHER_DISK, LogEnd(4, 5)), ErrorCode.INVALID_VOTER_KEY),
        (Vote(5, TWO, THREE, LogEnd(4, 5)), ErrorCode.INVALID_VOTER_KEY),
        (Vote(5, TWO, ReplicaKey(1), LogEnd(4, 5)), ErrorCode.NONE),
        (Vote(5, TWO, ONE, LogEnd(5, 5)), ErrorCode.INVALID_REQUEST),
        (Vote(5, TWO, ONE, LogEnd(5, 5), pre_vote=True), ErrorCode.NONE),
        (Vote(5, TWO, ONE, LogEnd(6, 5), pre_vote=True), ErrorCode.INVALID_REQUEST),
        (Vote(5, TWO, ONE, LogEnd(-1, 5)), ErrorCode.INVALID_REQUEST),
        (Vote(5, TWO, ONE, LogEnd(4, -1)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_vote_is_valid_or_rejected(request_: Vote, error: ErrorCode) -> None:
    member = Member(4)
    answer = member.node.vote(request_).answer
    assert isinstance(answer, VoteAnswer)
    assert answer.error is error
    assert answer.is_granted is (error is ErrorCode.NONE)


def test_a_node_with_a_new_disk_learns_the_epoch_from_what_was_for_its_old_one() -> None:
    member = Member(4)
    assert member.node.vote(Vote(5, TWO, OTHER_DISK, LogEnd(4, 5))).answer == VoteAnswer(
        5, error=ErrorCode.INVALID_VOTER_KEY
    )
    member.node.begin_epoch(BeginEpoch(6, 2, OTHER_DISK))
    assert (member.node.epoch, member.node.leader_id) == (6, 2)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (BeginEpoch(4, 2, ONE), ErrorCode.NONE),
        (BeginEpoch(3, 2, ONE), ErrorCode.FENCED_LEADER_EPOCH),
        (BeginEpoch(4, -1, ONE), ErrorCode.INVALID_REQUEST),
        (BeginEpoch(4, 3, ONE), ErrorCode.INVALID_REQUEST),
        (BeginEpoch(4, 2, OTHER_DISK), ErrorCode.INVALID_VOTER_KEY),
        (EndEpoch(4, 2), ErrorCode.NONE),
        (EndEpoch(3, 2), ErrorCode.FENCED_LEADER_EPOCH),
        (EndEpoch(4, 3), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_leader_is_heard_or_rejected(request_: BeginEpoch | EndEpoch, error: ErrorCode) -> None:
    member = Member(4)
    member.follow(TWO, 4)
    ready = member.node.begin_epoch(request_) if isinstance(request_, BeginEpoch) else member.node.end_epoch(request_)
    assert ready.answer == EpochAnswer(4, 2, error)


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.NONE), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_leader_answers_a_fetch_of_its_epoch_only(epoch: int, error: ErrorCode) -> None:
    member = Member(4)
    member.lead()
    answer = member.node.fetch(FetchFrom(epoch, TWO, 1, 4)).answer
    assert isinstance(answer, Fetched)
    assert (answer.epoch, answer.leader_id, answer.error) == (5, 1, error)


@pytest.mark.parametrize(
    "request_",
    [
        FetchFrom(5, TWO, -1, 4),
        FetchFrom(5, TWO, 1, -1),
        FetchFrom(5, TWO, 1, 6),
        FetchFrom(5, TWO, 1, 4, max_wait_ms=-1),
        FetchFrom(6, TWO, 1, 7),
    ],
)
def test_an_impossible_fetch_is_rejected(request_: FetchFrom) -> None:
    member = Member(4)
    member.lead()
    assert member.node.fetch(request_).answer == Fetched(5, 1, error=ErrorCode.INVALID_REQUEST)


def test_a_request_that_names_no_voter_is_for_whoever_receives_it() -> None:
    member = Member(4)
    assert member.node.vote(Vote(5, TWO, ReplicaKey(-1), LogEnd(4, 1))).answer == VoteAnswer(5, is_granted=True)
    assert member.node.begin_epoch(BeginEpoch(6, 3, ReplicaKey(-1))).answer == EpochAnswer(6, 3)


def test_a_replica_with_the_id_of_the_leader_is_rejected() -> None:
    """A copied directory must not speak for the leader's own log."""
    member = Member(4)
    member.lead()
    answer = member.fetched(ONE, 2, 5).answer
    assert answer == Fetched(5, 1, error=ErrorCode.INVALID_REQUEST)


def test_a_follower_names_the_leader_to_one_that_fetches() -> None:
    member = Member(4)
    member.follow(TWO, 4)
    answer = member.node.fetch(FetchFrom(4, THREE, 1, 4)).answer
    assert answer == Fetched(4, 2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_a_fetch_that_differs_says_nothing_of_the_replica() -> None:
    """KAFKA-13141: the offset is of a log that is still to be truncated."""
    member = Member(1, 1, 4)
    member.lead()
    member.flush()
    ready = member.fetched(TWO, 4, 3)
    assert ready.answer == Fetched(5, 1, diverging=LogEnd(1, 2))
    assert ready.high_watermark is None


def test_a_fetch_that_is_asked_again_says_nothing_new() -> None:
    member = Member(4)
    member.lead()
    member.flush()
    ready = member.node.fetch(FetchFrom(5, TWO, 2, 5), is_first=False)
    assert (ready.high_watermark, ready.answer) == (None, None)


def test_a_follower_truncates_where_its_log_differs_and_fetches_after_the_flush() -> None:
    member = Member(1, 1, 3, 3)
    fetch = member.follow(TWO, 4)
    assert fetch.request == FetchFrom(4, ONE, 4, 3)
    ready = member.answer(fetch, Fetched(4, 2, diverging=LogEnd(3, 3)))
    assert (ready.truncate_to, ready.flush) == (3, True)
    assert member.sent[0].request == FetchFrom(4, ONE, 3, 3)


def test_a_follower_fetches_again_when_what_it_has_is_on_disk() -> None:
    member = Member(1)
    fetch = member.follow(TWO, 4)
    ready = member.answer(fetch, Fetched(4, 2, 1, batches=(batch(1, 4),)))
    assert (ready.flush, ready.messages, ready.high_watermark) == (True, (), 1)
    assert member.flush().messages[0].request == FetchFrom(4, ONE, 2, 4, 1)


def test_the_high_watermark_of_the_leader_counts_up_to_the_own_end() -> None:
    member = Member(1)
    fetch = member.follow(TWO, 4)
    assert member.answer(fetch, Fetched(4, 2, 9)).high_watermark == 1


def test_a_follower_takes_a_snapshot_before_it_fetches_again() -> None:
    member = Member(1)
    fetch = member.follow(TWO, 4)
    ready = member.answer(fetch, Fetched(4, 2, snapshot=SnapshotId(9, 3)))
    assert (ready.snapshot, ready.messages) == (SnapshotId(9, 3), ())
    ready = member.node.snapshot_loaded(SnapshotId(9, 3), VOTERS)
    assert ready.high_watermark == 9
    assert ready.messages[0].request == FetchFrom(4, ONE, 9, 3, 9)


def test_a_snapshot_that_another_leader_began_is_not_taken() -> None:
    """The node may have promised the new leader records that the late snapshot does not hold."""
    member = Member(1)
    fetch = member.follow(TWO, 4)
    member.answer(fetch, Fetched(4, 2, snapshot=SnapshotId(9, 3)))
    assert member.node.wanted_snapshot == SnapshotId(9, 3)
    fetch = member.follow(THREE, 5)
    assert member.node.wanted_snapshot is None
    member.answer(fetch, Fetched(5, 3, batches=(batch(1, 5, count=20),)))
    with pytest.raises(AssertionError, match="does not want"):
        member.node.snapshot_loaded(SnapshotId(9, 3), VOTERS)


def test_an_answer_names_the_leader_of_a_higher_epoch() -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    member.answer(fetch, Fetched(6, 3, error=ErrorCode.FENCED_LEADER_EPOCH))
    assert (member.node.role, member.node.epoch, member.node.leader_id) == (Role.FOLLOWER, 6, 3)


def test_an_answer_of_an_older_epoch_is_dropped() -> None:
    member = Member(4)
    fetch = member.follow(TWO, 4)
    member.follow(THREE, 5)
    ready = member.answer(fetch, Fetched(4, 2, batches=(batch(1, 4),)))
    assert ready.batches == ()
    assert member.node.leader_id == 3


def test_the_leaders_high_watermark_is_known_beyond_the_own_log() -> None:
    member = Member(1)
    assert member.node.quorum_high_watermark == -1
    fetch = member.follow(TWO, 4)
    member.answer(fetch, Fetched(4, 2, 9))
    assert (member.node.high_watermark, member.node.quorum_high_watermark) == (1, 9)
    fetch = member.follow(THREE, 5)
    member.answer(fetch, Fetched(5, 3, -1))
    assert member.node.quorum_high_watermark == 9


def test_a_follower_that_takes_a_snapshot_keeps_its_leader() -> None:
    """It fetches no records meanwhile, and counts as heard all the same."""
    member = Member(4)
    member.lead()
    member.flush()
    for _ in range(4):
        member.now_ms += TIMEOUTS.fetch
        assert member.node.check_snapshot_request(FetchSnapshot(5, TWO, SnapshotId(1, 4), 0)) is ErrorCode.NONE
        member.do(member.node.tick())
    assert member.node.is_leader
    error = member.node.check_snapshot_request(FetchSnapshot(4, TWO, SnapshotId(1, 4), 0))
    assert error is ErrorCode.FENCED_LEADER_EPOCH
    for _ in range(4):
        member.node.check_snapshot_request(FetchSnapshot(5, OBSERVER, SnapshotId(1, 4), 0))
        member.wait(TIMEOUTS.fetch)
    assert not member.node.is_leader, "an observer is no majority"
