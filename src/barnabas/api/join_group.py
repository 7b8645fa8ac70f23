"""JoinGroup (API key 11, versions 0-9).

- The response is sent when the rebalance is complete.
- The leader's response lists the members with their metadata, the others' lists none.
- A dynamic member without an id gets MEMBER_ID_REQUIRED and an id from version 4.
- Errors found before the group is read: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT.
- Without a protocol its name is null; up to version 6 it is empty.

Version 1 adds the rebalance timeout (KIP-62), 4 the required member id (KIP-394), 5 the group instance id (KIP-345),
6 is flexible, 7 adds the protocol type (KIP-559), 8 the reason (KIP-800), 9 skip_assignment (KIP-814).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group.classic import requests
from barnabas.protocol.messages import JoinGroupRequest, JoinGroupResponse

NULLABLE_PROTOCOL_NAME_SINCE = 7


async def handle(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    """Join a group, or rejoin it."""
    response = await requests.join_group(context.services.group_coordinator, request, context.sender)
    nullable = context.version >= NULLABLE_PROTOCOL_NAME_SINCE
    response.protocol_name = response.protocol_name or (None if nullable else "")
    return response
