"""LeaveGroup (API key 13). Control plane.

Versions served: 0-5.

- From version 3 several members leave in one request, each with its own outcome; administrators name static members by their
  instance id alone.
- Before version 3 one member leaves, and its outcome is the response's error code.

Version 3 names members with instance ids (KIP-345), 4 is flexible, 5 adds the reason (KIP-800).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

BATCHED_SINCE = 3


def handle(context: RequestContext, request: LeaveGroupRequest) -> asyncio.Future[LeaveGroupResponse]:
    """Remove members from a group."""
    coordinator = context.services.group_coordinator
    if context.version >= BATCHED_SINCE:
        return coordinator.leave_group(request)
    request.members = [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    return mapped(context.services.loop, coordinator.leave_group(request), _of_one_member)


def _of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    error = response.error_code
    if error == ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    return LeaveGroupResponse(error_code=error)
