"""What a leader counts as committed, whom it informs, and when it gives up."""

from __future__ import annotations

from barnabas.raft.election_state import ElectionState
from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import BeginEpoch, EpochAnswer, LogEnd, VoteAnswer
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from tests.raft.member_of_three import OBSERVER, ONE, THREE, TIMEOUTS, TWO, VOTERS, Member

CHECK_MS = TIMEOUTS.fetch * 3 // 2


def leader(epoch_start_offset: int = 10) -> Leader:
    return Leader(4, epoch_start_offset, ONE, VOTERS, CHECK_MS, deadline_ms=CHECK_MS, begin_at_ms=0)


def test_a_record_of_an_older_epoch_is_not_committed_by_counting() -> None:
    """Figure 8 of the Raft paper: a majority holds it, and another leader may still overwrite it."""
    state = leader(epoch_start_offset=10)
    state.flushed(10, 0)
    state.fetched(TWO, 10, LogEnd(4, 11), 0)
    assert state.advance() == -1
    state.flushed(11, 0)
    assert state.advance() == -1
    state.fetched(TWO, 11, LogEnd(4, 11), 0)
    assert state.advance() == 11


def test_the_high_watermark_never_goes_back() -> None:
    state = leader()
    state.flushed(12, 0)
    state.fetched(TWO, 12, LogEnd(4, 12), 0)
    assert state.advance() == 12
    state.fetched(TWO, 3, LogEnd(4, 12), 0)
    assert state.advance() == 12


def test_an_observer_does_not_count() -> None:
    state = leader()
    state.flushed(12, 0)
    state.fetched(OBSERVER, 12, LogEnd(4, 12), 0)
    state.fetched(ReplicaKey(2, b"new disk" * 2), 12, LogEnd(4, 12), 0)
    assert state.advance() == -1
    assert set(state.observers) == {OBSERVER, ReplicaKey(2, b"new disk" * 2)}


def test_a_voter_that_does_not_tell_its_directory_does_not_count() -> None:
    """It may have lost the disk on which it promised to keep the log."""
    state = leader()
    state.flushed(12, 0)
    state.fetched(ReplicaKey(2), 12, LogEnd(4, 12), 0)
    assert state.advance() == -1


def test_only_replicas_are_observed_and_not_for_ever() -> None:
    state = leader()
    state.fetched(ReplicaKey(-1), 12, LogEnd(4, 12), 0)
    assert state.observers == {}
    state.fetched(OBSERVER, 12, LogEnd(4, 12), 0)
    state.fetched(ReplicaKey(8), 12, LogEnd(4, 12), 300_000)
    assert set(state.observers) == {OBSERVER, ReplicaKey(8)}
    state.forget_observers(300_001)
    assert set(state.observers) == {ReplicaKey(8)}


def test_a_leader_grants_no_vote() -> None:
    for pre_vote in (True, False):
        assert not leader().grants(TWO, is_up_to_date=True, pre_vote=pre_vote)


def test_the_successors_are_those_with_the_longest_logs() -> None:
    state = leader()
    state.fetched(THREE, 12, LogEnd(4, 12), 0)
    state.fetched(TWO, 11, LogEnd(4, 12), 0)
    assert state.successors() == (THREE, TWO)
    assert state.election == ElectionState(4, leader_id=1)


def test_a_leader_that_no_majority_fetches_from_resigns() -> None:
    member = Member(4)
    member.lead()
    member.wait(CHECK_MS - 1)
    member.fetched(TWO, 1, 4)
    member.wait(CHECK_MS - 1)
    assert member.node.is_leader
    member.fetched(OBSERVER, 1, 4)
    ready = member.wait(1)
    assert (member.node.role, ready.left_epoch) == (Role.RESIGNED, 5)


def test_voters_that_do_not_fetch_are_informed_until_they_answer() -> None:
    member = Member(4)
    member.lead()
    assert [message.to for message in member.sent] == [2, 3]
    second = member.sent[1]
    assert second.request == BeginEpoch(5, 1, THREE)
    member.fetched(TWO, 1, 4)
    member.do(member.node.answered(3, second.request, EpochAnswer(5, 1)))
    member.wait(TIMEOUTS.fetch)
    assert member.sent == []


def test_a_voter_that_is_silent_for_long_is_informed_again() -> None:
    """It may have lost its directory, and knows nobody."""
    member = Member(4)
    member.lead()
    member.fetched(THREE, 1, 4)
    for _ in range(3):
        member.wait(CHECK_MS // 3)
        member.fetched(TWO, 1, 4)
        assert member.sent == []
    member.wait(TIMEOUTS.fetch)
    assert [(message.to, type(message.request)) for message in member.sent] == [(3, BeginEpoch)]


def test_a_leader_takes_office_once_its_first_record_is_committed() -> None:
    member = Member(4)
    member.lead()
    assert member.flush().high_watermark is None
    assert member.fetched(TWO, 1, 4).leader_epoch is None
    ready = member.fetched(TWO, 2, 5)
    assert (ready.high_watermark, ready.leader_epoch) == (2, 5)


def test_another_voter_may_commit_what_the_leader_has_not_flushed() -> None:
    member = Member(4)
    member.lead()
    member.fetched(TWO, 2, 5)
    assert member.fetched(THREE, 2, 5).high_watermark == 2


def test_a_removed_node_does_not_begin_with_an_epoch_that_it_leaves_at_once() -> None:
    member = Member(1, 1)
    member.node.history.add(VotersFrom(1, VoterSet.of(Voter(*key) for key in (TWO, THREE))))
    # It does not know that its removal is committed, and the others elect it.
    member.stand()
    for _ in range(2):
        first, second = member.sent
        member.answer(first, VoteAnswer(member.node.epoch, is_granted=True))
        member.answer(second, VoteAnswer(member.node.epoch, is_granted=True))
    assert member.node.is_leader
    member.flush()
    member.fetched(TWO, 3, 2)
    ready = member.fetched(THREE, 3, 2)
    assert member.node.role is Role.RESIGNED
    assert (ready.high_watermark, ready.leader_epoch, ready.left_epoch) == (3, None, member.node.epoch)
