"""A voter that asks whether it would be elected, before it raises its epoch and disturbs a leader (KIP-996).

Source: Kafka's `ProspectiveState`.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.raft.ballot import Ballot, grants_without_leader
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role


@dataclass(slots=True)
class Prospective:
    """Attributes: `voted` and `leader_id` are what the node knew of this epoch before, and must not forget."""

    epoch: int
    deadline_ms: int
    ballot: Ballot
    voted: ReplicaKey | None = None
    leader_id: int = NO_NODE
    role: Role = Role.PROSPECTIVE

    @property
    def election(self) -> ElectionState:
        return ElectionState.of(self.epoch, self.leader_id, self.voted)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return grants_without_leader(
            candidate, self.voted, self.leader_id, is_up_to_date=is_up_to_date, pre_vote=pre_vote
        )
