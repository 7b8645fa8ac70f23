"""LeaveGroup (API key 13, versions 0-5).

- From version 3 several members leave in one request, each with its own outcome; administrators name static members by their
  instance id alone.
- Before version 3 one member leaves, and its outcome is the response's error code.

Version 3 names members with instance ids (KIP-345), 4 is flexible, 5 adds the reason (KIP-800).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group.classic import requests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

BATCHED_SINCE = 3


async def handle(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members from a group."""
    is_batched = context.version >= BATCHED_SINCE
    if not is_batched:
        request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    response = await requests.leave_group(context.services.group_coordinator, request, context.sender)
    if is_batched:
        return response
    error = response.error_code
    if error == ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    return LeaveGroupResponse(error_code=error)
