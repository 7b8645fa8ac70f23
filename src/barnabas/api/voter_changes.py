"""Changes of the quorum's voters (KIP-853).

    AddRaftVoter     (API key 80, versions 0-1)   make a controller a voter; 1 may acknowledge before the commit (KIP-1186)
    RemoveRaftVoter  (81, version 0)              take a controller out of the voters
    UpdateRaftVoter  (82, version 0)              a voter sends its endpoints and its versions of kraft.version

- `metadata.voter_requests` and `raft.voter_changes` have the rules; the leader of the quorum answers.
- On a controller's listener, any other node than the leader returns NOT_LEADER_OR_FOLLOWER. `add_raft_voter` and `remove_raft_voter`
  are the same on a broker's listener.
- The answer to UpdateRaftVoter names the leader, and its address if this node knows it.
"""

from __future__ import annotations

from barnabas.api.serving.context import ControllerContext
from barnabas.api.serving.excess import check_elements
from barnabas.api.serving.forwarding import forward
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse


async def handle(context: ControllerContext, request: Message) -> Message:
    check_elements(context, request)
    services = context.services
    try:
        response: Message = await forward(context, request)
    except KafkaError as error:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code == ErrorCode.NOT_CONTROLLER else error.code
        # A stranger does not learn who leads.
        if not isinstance(request, UpdateRaftVoterRequest) or code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise KafkaError(code) from None
        response = UpdateRaftVoterResponse(error_code=code)
    if isinstance(response, UpdateRaftVoterResponse):
        node = services.driver.node
        endpoint = services.driver.endpoint_of(node.leader_id, context.connection.listener_name)
        response.current_leader = UpdateRaftVoterResponse.CurrentLeader(
            leader_id=node.leader_id,
            leader_epoch=node.epoch,
            host="" if endpoint is None else endpoint.host,
            port=0 if endpoint is None else endpoint.port,
        )
    return response
