"""ShareGroupHeartbeat (API key 76). Control plane.

Versions served: 1.

- Member epoch 0 joins (or joins again), -1 leaves, any other is a member's own; the member makes its id.
- The assignment is given on joining, with a full request, and when it has changed. A partition may be assigned to several members.
- Partitions of a topic that is new to the group are assigned with the next heartbeat: their state is begun first.
- Joining without topics, or an empty id: INVALID_REQUEST. UNSUPPORTED_VERSION while share.version is 0.

Version 1 is KIP-932; version 0 was its early access and is refused.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import check_member, check_share_groups_enabled
from barnabas.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def handle(context: RequestContext, request: ShareGroupHeartbeatRequest) -> asyncio.Future[ShareGroupHeartbeatResponse]:
    """Take a member's heartbeat."""
    check_share_groups_enabled(context)
    check_member(request.group_id, request.member_id)
    return context.services.share.groups.heartbeat(
        request,
        context.client_id or "",
        f"/{context.connection.peer_host}",  # As Java prints an address without a name.
    )
