"""A voter that has raised its epoch, voted for itself, and asks the others for their votes.

Source: Kafka's `CandidateState`.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.raft.ballot import Ballot
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role


@dataclass(slots=True)
class Candidate:
    epoch: int
    deadline_ms: int
    ballot: Ballot
    voted: ReplicaKey
    role: Role = Role.CANDIDATE
    leader_id: int = NO_NODE

    @property
    def election(self) -> ElectionState:
        return ElectionState.of(self.epoch, NO_NODE, self.voted)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return is_up_to_date if pre_vote else False
