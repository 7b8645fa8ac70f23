"""DescribeGroups (API key 15). Control plane.

Versions served: 0-6.

- Metadata and assignments are given for a stable group only.
- A group that is not there: GROUP_ID_NOT_FOUND with a message from version 6, before it the state Dead.
- Authorized operations on request: all that a group has, as there is no authorizer.
- Groups are answered in the order asked.

Version 3 adds authorized operations (KIP-430), 4 the group instance id (KIP-345), 5 is flexible, 6 has GROUP_ID_NOT_FOUND
(KIP-1043).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = 3, 6, 8, 10, 11
GROUP_OPERATIONS = sum(1 << code for code in (_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS))
"""The ACL operations that a group resource has, as a bit field of their codes."""


def handle(context: RequestContext, request: DescribeGroupsRequest) -> asyncio.Future[DescribeGroupsResponse]:
    """Describe groups of the classic protocol."""

    def response(groups: list[DescribeGroupsResponse.DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    described = context.services.group_coordinator.describe_groups(request.groups, context.version)
    return mapped(context.services.loop, described, response)
