"""Requests of the quorum's nodes: passed to this node's raft driver, and answered with the address of the leader.

An answer names the leader on the listener by which the request came, as in Kafka, if this node knows it.

Source: Kafka's `ControllerApis.handleRaftRequest`, `KafkaRaftClient.handleRequest`.
"""

from __future__ import annotations

from barnabas.api.context import ControllerContext
from barnabas.raft.answer_messages import NodeAddress, PeerResponse, answer_message
from barnabas.raft.request_messages import PeerRequest, read_request

__all__ = ["answer_peer", "leader_address"]


async def answer_peer(context: ControllerContext, message: PeerRequest) -> PeerResponse:
    """Return the quorum's answer to a request; a fetch may wait for it.

    Raises:
        KafkaError: for the top level of the response, as `request_messages.read_request` and `RaftDriver.answer` have it.
    """
    if context.accounting is not None:
        # No quota slows the quorum.
        context.accounting.is_settled = True
    services, version = context.services, context.version
    request = read_request(message, version, services.cluster_id)
    answer = await services.driver.answer(request)
    return answer_message(request, answer, version, leader_address(context, answer.leader_id))


def leader_address(context: ControllerContext, leader_id: int) -> NodeAddress | None:
    """Return where the leader serves the quorum; None if this node does not know it, or there is no leader."""
    for voter in context.services.driver.node.voters.voters:
        if voter.id == leader_id:
            for endpoint in voter.endpoints:
                if endpoint.name == context.connection.listener_name:
                    return NodeAddress(leader_id, endpoint.host, endpoint.port)
    return None
