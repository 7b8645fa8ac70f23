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

    def names(self, replica: ReplicaKey) -> bool:
        """Return whether this key names a replica; one without a directory names every replica of its node."""
        return self.id == replica.id and self.directory_id in (ZERO_UUID, replica.directory_id)
