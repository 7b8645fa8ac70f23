"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter as Kafka's messages, and their answers.

The leader of the quorum answers them. A request that names another cluster is rejected with INCONSISTENT_CLUSTER_ID.

Sources: KIP-853, KIP-1186; Kafka's `KafkaRaftClient.handleAddVoterRequest` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voter_changes import VoterChangeResult, VoterChanges
from barnabas.raft.voters import Voter, VoterEndpoint

__all__ = ["VoterRequest", "VoterRequests", "VoterResponse"]

VoterRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
VoterResponse = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse


class VoterRequests:
    """Answers the requests of the quorum's leader.

    Args:
        changes: of this node; None if no other node can reach it, so that the quorum cannot grow.
    """

    def __init__(self, changes: VoterChanges | None, cluster_id: str) -> None:
        self._changes = changes
        self._cluster_id = cluster_id

    def __repr__(self) -> str:
        return f"<VoterRequests {self._changes!r}>"

    async def answer(self, request: VoterRequest) -> VoterResponse:
        """Return the response, when the change is committed or cannot be."""
        error, message = await self._change(request)
        match request:
            case AddRaftVoterRequest():
                return AddRaftVoterResponse(error_code=error, error_message=message)
            case RemoveRaftVoterRequest():
                return RemoveRaftVoterResponse(error_code=error, error_message=message)
            case UpdateRaftVoterRequest():
                return UpdateRaftVoterResponse(error_code=error)

    async def _change(self, request: VoterRequest) -> VoterChangeResult:
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            words = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{self._cluster_id}"'
            return VoterChangeResult(ErrorCode.INCONSISTENT_CLUSTER_ID, words)
        changes = self._changes
        if changes is None:
            return NOT_REACHABLE
        match request:
            case AddRaftVoterRequest():
                voter = Voter(request.voter_id, request.voter_directory_id, _endpoints(request.listeners))
                return await changes.add(voter, when_committed=request.ack_when_committed)
            case RemoveRaftVoterRequest():
                return await changes.remove(ReplicaKey(request.voter_id, request.voter_directory_id))
            case UpdateRaftVoterRequest():
                return VoterChangeResult(changes.update(request.current_leader_epoch, _updated(request)))


NOT_REACHABLE = VoterChangeResult(
    ErrorCode.UNSUPPORTED_VERSION, "The voters cannot be changed: this node has no listener for other controllers."
)


def _endpoints(
    listeners: Sequence[AddRaftVoterRequest.Listener] | Sequence[UpdateRaftVoterRequest.Listener],
) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(each.name.upper(), each.host, each.port) for each in listeners)


def _updated(request: UpdateRaftVoterRequest) -> Voter:
    return Voter(
        request.voter_id,
        request.voter_directory_id,
        _endpoints(request.listeners),
        request.k_raft_version_feature.min_supported_version,
        request.k_raft_version_feature.max_supported_version,
    )
