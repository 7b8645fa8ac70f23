"""Requests between the nodes of the quorum: passed to this node's raft driver, and answered with the address of the leader.

    Fetch             (API key 1, versions 4-18)   read the metadata log; the only partition on a controller's listener
    Vote              (52, versions 0-2)           1 adds directory ids and endpoints (KIP-853), 2 the pre-vote (KIP-996)
    BeginQuorumEpoch  (53, versions 0-1)           1 adds directory ids and the leader's endpoints
    EndQuorumEpoch    (54, versions 0-1)           1 adds directory ids and endpoints
    FetchSnapshot     (59, versions 0-1)           read a piece of a snapshot; 1 adds directory ids and endpoints

- `raft.raft_node` has the rules. A request that is not about `__cluster_metadata` partition 0 alone is INVALID_REQUEST as a whole, and
  one of another cluster INCONSISTENT_CLUSTER_ID. `serving.excess` bounds its arrays.
- A fetch at the end of the log waits, up to max_wait_ms, for records or for a higher high watermark. It holds its own connection only.
- An answer names the leader on the listener by which the request came, as in Kafka, if this node knows it.

Source: Kafka's `ControllerApis.handleRaftRequest`, `KafkaRaftClient.handleRequest`; KIP-595, KIP-630.
"""

from __future__ import annotations

from barnabas.api.serving.context import ControllerContext
from barnabas.api.serving.excess import check_elements
from barnabas.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.raft.answer_messages import NodeAddress, PeerResponse, answer_message
from barnabas.raft.request_messages import PeerRequest, read_request
from barnabas.raft.snapshot_messages import piece_message, read_snapshot_request


async def handle(
    context: ControllerContext, message: PeerRequest | FetchSnapshotRequest
) -> PeerResponse | FetchSnapshotResponse:
    if context.accounting is not None:
        # No quota slows the quorum.
        context.accounting.is_settled = True
    check_elements(context, message)
    services, version = context.services, context.version
    driver = services.driver
    if isinstance(message, FetchSnapshotRequest):
        piece = driver.answer_snapshot(read_snapshot_request(message, services.cluster_id))
        return piece_message(piece, version, _address(context, piece.leader_id))
    request = read_request(message, version, services.cluster_id)
    answer = await driver.answer(request)
    return answer_message(request, answer, version, _address(context, answer.leader_id))


def _address(context: ControllerContext, leader_id: int) -> NodeAddress | None:
    """Return where the leader serves the quorum; None if this node does not know it, or there is no leader."""
    endpoint = context.services.driver.endpoint_of(leader_id, context.connection.listener_name)
    return None if endpoint is None else NodeAddress(leader_id, endpoint.host, endpoint.port)
