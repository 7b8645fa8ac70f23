"""ShareGroupHeartbeat (API key 76, version 1): a member joins a share group, stays, or leaves.

- Member epoch 0 joins (or joins again), -1 leaves, any other is the member's current epoch. The member makes its own id.
- The response has the assignment on joining, after a full request, and when it has changed. Several members may have one partition.
- Partitions of a topic that is new to the group are assigned with the next heartbeat: their states are initialized first.
- Joining without topics, or an empty id, gets INVALID_REQUEST; any request UNSUPPORTED_VERSION while share.version is 0.

Version 1 is KIP-932; version 0, its early access, is not served.
"""

from __future__ import annotations

from barnabas.api.authorization import members as authorization
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.excess import check_subscription
from barnabas.api.serving.share_requests import check_member, check_share_groups_enabled
from barnabas.protocol.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


async def handle(context: RequestContext, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Handle a member's heartbeat."""
    check_share_groups_enabled(context)
    await authorization.check_member(context.asker, request.group_id, request.subscribed_topic_names)
    check_member(request.group_id, request.member_id)
    await check_subscription(context, request.subscribed_topic_names)
    return await context.services.share.groups.heartbeat(request, context.sender)
