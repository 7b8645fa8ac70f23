"""The durable state of elections: the file `quorum-state`.

    {"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}

One line of JSON, Kafka's QuorumStateData; version 1 since KIP-853, version 0 (with cluster id, applied offset and voters)
is read as well.

Crash argument: the file is replaced whole (write aside, flush, rename, flush the directory), so a reader finds the old
state or the new one. Losing a new state that no other node has seen is harmless. A torn file is rejected, because a
node that forgets its vote could vote twice in one epoch.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from barnabas.protocol.primitives import ZERO_UUID, uuid_from_str, uuid_to_str
from barnabas.raft.replica_key import ReplicaKey

NO_NODE = -1


class BadElectionState(Exception):
    """The quorum-state file is not a valid QuorumStateData; the node must not start on a guess."""


class ElectionState(NamedTuple):
    """Attributes: `leader_id` and `voted_id` are -1 for none; `epoch` -1 before the first election."""

    epoch: int = -1
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    voted_directory_id: bytes = ZERO_UUID

    @classmethod
    def of(cls, epoch: int, leader_id: int, voted: ReplicaKey | None) -> ElectionState:
        """Return the state that a role has to remember."""
        return cls(epoch, leader_id) if voted is None else cls(epoch, leader_id, *voted)

    @property
    def voted(self) -> ReplicaKey | None:
        """Whom this node voted for in the epoch."""
        return None if self.voted_id == NO_NODE else ReplicaKey(self.voted_id, self.voted_directory_id)

    @property
    def has_leader(self) -> bool:
        return self.leader_id != NO_NODE

    def to_bytes(self) -> bytes:
        fields = {
            "leaderId": self.leader_id,
            "leaderEpoch": self.epoch,
            "votedId": self.voted_id,
            "votedDirectoryId": uuid_to_str(self.voted_directory_id),
            "data_version": 1,
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ElectionState:
        try:
            fields = json.loads(data)
            version = fields["data_version"]
            if version not in (0, 1):
                raise BadElectionState(f"quorum-state has data_version {version}; this version reads 0 and 1")
            directory = fields.get("votedDirectoryId")
            return cls(
                epoch=int(fields["leaderEpoch"]),
                leader_id=int(fields["leaderId"]),
                voted_id=int(fields["votedId"]),
                voted_directory_id=uuid_from_str(directory) if directory else ZERO_UUID,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadElectionState("quorum-state is not valid") from error
