"""The votes of one election, or of one pre-vote."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.raft.quorum import ElectionOutcome, election_outcome


class Ballot:
    """Who has granted and who has rejected; the node's own vote is granted from the beginning."""

    def __init__(self, voters: Iterable[int], own_id: int) -> None:
        self._votes: dict[int, bool | None] = dict.fromkeys(voters)
        self._votes[own_id] = True

    def __repr__(self) -> str:
        return f"<Ballot granted={self.granting} undecided={self.undecided}>"

    def record(self, voter: int, is_granted: bool) -> None:
        """Count an answer; who is no voter does not count, and a vote that was granted stays so."""
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
