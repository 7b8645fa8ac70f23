"""A replica of the metadata log: a node together with its metadata directory.

A node with a new disk is another replica: it has forgotten its votes and its log (KIP-853).
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.primitives import ZERO_UUID


class ReplicaKey(NamedTuple):
    """Attributes: `directory_id` is the zero id where only a static configuration names the node."""

    id: int
    directory_id: bytes = ZERO_UUID

    def is_same(self, other: ReplicaKey) -> bool:
        """Return whether both may be one replica: a directory that is not named agrees with each."""
        unnamed = ZERO_UUID in (self.directory_id, other.directory_id)
        return self.id == other.id and (unnamed or self.directory_id == other.directory_id)
