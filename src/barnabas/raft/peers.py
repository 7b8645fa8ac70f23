"""The seam to the other nodes of the quorum: a shell carries requests to them, and knows where they are.

`quorum.quorum_peers` does so over the network, the tests in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.raft.peer_messages import Answer, FetchSnapshot, Request, SnapshotPiece
from barnabas.raft.voters import VoterEndpoint

__all__ = ["Peers"]


class Peers(Protocol):
    """The other nodes of the quorum, as this one reaches them."""

    async def send(self, to: int, request: Request) -> Answer:
        """Carry a request to a node and return its answer; a node below -1 is one of `peer_messages.bootstrap_ids`.

        Raises:
            KafkaError: there is no answer, or it cannot be used. After `QuorumTimeouts.request` the node sends another request, so a
                request without an answer should fail by then.
        """

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        """Carry a request for a piece of a snapshot; raises as `send` does."""

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        """Return where a node serves the quorum; None if that is not known."""

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        """Take over where a node says that it serves the quorum."""

    def close(self) -> None:
        """End what is under way, and send nothing more."""
