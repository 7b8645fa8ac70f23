"""A node that knows an epoch, may know its vote or the leader, and follows no leader yet.

Source: Kafka's `UnattachedState`.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.raft.ballot import grants_without_leader
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role


@dataclass(slots=True)
class Unattached:
    """Attributes: `leader_id` -1 if unknown; `deadline_ms` when a voter stands for election."""

    epoch: int
    deadline_ms: int
    voted: ReplicaKey | None = None
    leader_id: int = NO_NODE
    role: Role = Role.UNATTACHED

    @property
    def election(self) -> ElectionState:
        return ElectionState.of(self.epoch, self.leader_id, self.voted)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return grants_without_leader(
            candidate, self.voted, self.leader_id, is_up_to_date=is_up_to_date, pre_vote=pre_vote
        )
