"""The votes of one election, or of one pre-vote; and the vote of a node that follows no leader."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.raft.election_state import NO_NODE
from barnabas.raft.quorum import ElectionOutcome, election_outcome
from barnabas.raft.replica_key import ReplicaKey


def grants_without_leader(
    candidate: ReplicaKey, voted: ReplicaKey | None, leader_id: int, *, is_up_to_date: bool, pre_vote: bool
) -> bool:
    """Return whether a node that does not follow anyone gives a candidate its vote.

    Args:
        voted: whom it voted for in this epoch.
        leader_id: the leader that it knows of this epoch; -1 if it knows none.
    """
    if pre_vote:
        return is_up_to_date
    if voted is not None:
        return voted.names(candidate)
    # This epoch has a leader already, so another candidate is too late.
    return leader_id == NO_NODE and is_up_to_date


class Ballot:
    """The voters that have granted and rejected. If the node itself is a voter, its own vote is granted from the beginning."""

    def __init__(self, voters: Iterable[int], own_id: int) -> None:
        self._votes: dict[int, bool | None] = dict.fromkeys(voters)
        if own_id in self._votes:
            self._votes[own_id] = True

    def __repr__(self) -> str:
        return f"<Ballot granted={self.granting} undecided={self.undecided}>"

    def record(self, voter: int, is_granted: bool) -> None:
        """Count an answer. A node that is no voter does not count, and a granted vote stays granted."""
        if voter in self._votes and not self._votes[voter]:
            self._votes[voter] = is_granted

    @property
    def outcome(self) -> ElectionOutcome:
        return election_outcome(self._votes)

    @property
    def granting(self) -> list[int]:
        return [voter for voter, granted in self._votes.items() if granted]

    @property
    def undecided(self) -> list[int]:
        """The voters that have not answered."""
        return [voter for voter, granted in self._votes.items() if granted is None]
