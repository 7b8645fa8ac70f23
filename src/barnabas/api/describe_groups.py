"""DescribeGroups (API key 15, versions 0-6).

- Only a stable group has metadata and assignments.
- A missing group: GROUP_ID_NOT_FOUND with a message from version 6, before it the state Dead.
- Authorized operations on request: all operations on a group, as there is no authorizer.
- The response has the groups in the order of the request.

Version 3 adds authorized operations (KIP-430), 4 the group instance id (KIP-345), 5 is flexible, 6 has GROUP_ID_NOT_FOUND
(KIP-1043).
"""

from __future__ import annotations

from barnabas.api.serving.authorized_operations import add_group_operations
from barnabas.api.serving.context import RequestContext
from barnabas.group.classic import requests
from barnabas.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse


async def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe groups of the classic protocol."""
    groups = await requests.describe(context.services.group_coordinator, request.groups, context.version)
    await add_group_operations(request, groups)
    return DescribeGroupsResponse(groups=groups)
