"""The votes of one election."""

from __future__ import annotations

from barnabas.raft.ballot import Ballot
from barnabas.raft.quorum import ElectionOutcome


def test_the_own_vote_is_granted_from_the_beginning() -> None:
    assert Ballot([1], 1).outcome is ElectionOutcome.WON
    ballot = Ballot([1, 2, 3], 1)
    assert (ballot.outcome, ballot.granting, ballot.undecided) == (ElectionOutcome.PENDING, [1], [2, 3])


def test_a_majority_decides() -> None:
    ballot = Ballot([1, 2, 3], 1)
    ballot.record(2, False)
    assert ballot.outcome is ElectionOutcome.PENDING
    ballot.record(3, False)
    assert ballot.outcome is ElectionOutcome.LOST
    ballot = Ballot([1, 2, 3], 1)
    ballot.record(3, True)
    assert (ballot.outcome, ballot.granting) == (ElectionOutcome.WON, [1, 3])


def test_a_node_that_is_not_a_voter_does_not_count() -> None:
    ballot = Ballot([1, 2, 3], 1)
    ballot.record(9, True)
    assert ballot.granting == [1]


def test_a_granted_vote_stays_granted() -> None:
    ballot = Ballot([1, 2, 3], 1)
    ballot.record(2, True)
    ballot.record(2, False)
    assert ballot.granting == [1, 2]
