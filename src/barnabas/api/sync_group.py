"""SyncGroup (API key 14, versions 0-5).

- The leader's request has the assignment; all members are answered when it is written.
- From version 5 protocol type and name must be those of the group: INCONSISTENT_GROUP_PROTOCOL.

Version 3 adds the group instance id (KIP-345), 4 is flexible, 5 adds protocol type and name (KIP-559).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group.classic import requests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SyncGroupRequest, SyncGroupResponse

PROTOCOL_MANDATORY_SINCE = 5


async def handle(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Send the assignment, or fetch a member's part of it."""
    if context.version >= PROTOCOL_MANDATORY_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return await requests.sync_group(context.services.group_coordinator, request, context.sender)
