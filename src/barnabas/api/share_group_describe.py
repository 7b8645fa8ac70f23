"""ShareGroupDescribe (API key 77). Control plane.

Versions served: 1.

- Groups are answered in the order asked; one that is not there, or of another type: GROUP_ID_NOT_FOUND with a message.
- Authorized operations on request: all that a group has, as there is no authorizer.

Version 1 is KIP-932; version 0 was its early access and is refused.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.describe_groups import GROUP_OPERATIONS
from barnabas.api.share_requests import check_share_groups_enabled
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse


def handle(context: RequestContext, request: ShareGroupDescribeRequest) -> asyncio.Future[ShareGroupDescribeResponse]:
    """Describe share groups."""
    check_share_groups_enabled(context)

    def response(groups: list[ShareGroupDescribeResponse.DescribedGroup]) -> ShareGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        return ShareGroupDescribeResponse(groups=groups)

    return mapped(context.services.loop, context.services.share.groups.describe(request.group_ids), response)
