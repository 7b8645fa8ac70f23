"""A leader that gave up its epoch: it informs the others, and neither leads nor votes in that epoch again.

Source: Kafka's `ResignedState`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.raft.election_state import ElectionState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role


@dataclass(slots=True)
class Resigned:
    """Attributes: `unacknowledged` are the voters to inform; `preferred` the successors in the order of their logs."""

    epoch: int
    leader_id: int
    deadline_ms: int
    preferred: tuple[ReplicaKey, ...] = ()
    unacknowledged: set[int] = field(default_factory=set)
    role: Role = Role.RESIGNED
    voted: ReplicaKey | None = None

    @property
    def election(self) -> ElectionState:
        return ElectionState.of(self.epoch, self.leader_id, None)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return pre_vote and is_up_to_date
