"""A node that knows the leader of its epoch and fetches the log from it.

Source: Kafka's `FollowerState`.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.raft.election_state import ElectionState
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role

REFUSALS_OF_THE_DEAD = 2


@dataclass(slots=True)
class Follower:
    """The follower of one leader.

    Attributes:
        deadline_ms: when the leader counts as gone.
        has_fetched: whether it has ever answered a Fetch.
        refusals: how often nothing has listened at the leader's address since it last answered.
        asks_others: whether the next Fetch goes to another node than the leader, which did not answer the last one.
    """

    epoch: int
    leader_id: int
    deadline_ms: int
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    asks_others: bool = False
    refusals: int = 0
    role: Role = Role.FOLLOWER

    @property
    def has_dead_leader(self) -> bool:
        """Whether the leader's process has ended: nothing listens at its address, twice in a row."""
        return self.refusals >= REFUSALS_OF_THE_DEAD

    @property
    def election(self) -> ElectionState:
        return ElectionState.of(self.epoch, self.leader_id, self.voted)

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        if pre_vote:
            # A voter that hears its leader keeps a cut-off node from disturbing it.
            return is_up_to_date and (not self.has_fetched or self.has_dead_leader)
        return self.voted is not None and self.voted.names(candidate)
