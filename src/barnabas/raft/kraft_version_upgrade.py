"""The upgrade of a static quorum to kraft.version 1, after which its voters can change.

- While kraft.version is 0, only the configuration names the voters, and not their directories. Each voter tells the leader of an
  epoch its directory, addresses and versions (UpdateRaftVoter); the leader keeps them in memory, as `Leader.named`.
- The leader appends kraft.version and the voters in one batch (`RaftNode.change_voters`). It can do so when every voter has told it these.
- If the leader dies before the batch is committed, the log decides whether the quorum is upgraded or still static.
- UpdateFeatures asks for it (`metadata.feature_control`).

Sources: KIP-853; Kafka's `LeaderState.maybeAppendUpgradedKRaftVersion`.
"""

from __future__ import annotations

from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.leader import Leader

__all__ = ["objection"]


def objection(state: Leader, level: int) -> str | None:
    """Return why the quorum cannot have this level now, in Kafka's words; None if it can."""
    if all(each.directory_id != ZERO_UUID and each.supports(level) for each in state.named.voters):
        return None
    return f"Invalid upgrade of kraft.version to KRAFT_VERSION_{level} because not all of the voters support it"
