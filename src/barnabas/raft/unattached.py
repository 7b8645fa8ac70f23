"""A node that knows an epoch, and perhaps whom it voted for or who leads, and does not follow anyone yet.

Source: Kafka's `UnattachedState`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        if pre_vote:
            return is_up_to_date
        if self.voted is not None:
            return self.voted.names(candidate)
        # A leader of this epoch was elected: another candidate comes too late.
        return self.leader_id == NO_NODE and is_up_to_date
