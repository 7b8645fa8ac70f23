"""ShareGroupDescribe (API key 77, version 1): share groups with their members.

- The response has the groups in the order of the request. A missing group, or one of another type, gets GROUP_ID_NOT_FOUND with a message.
- Authorized operations on request: all operations on a group, as there is no authorizer.

Version 1 is KIP-932; version 0, its early access, is not served.
"""

from __future__ import annotations

from barnabas.api.serving.authorized_operations import add_group_operations
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse


async def handle(context: RequestContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe share groups."""
    check_share_groups_enabled(context)
    groups = await context.services.share.groups.describe(request.group_ids)
    await add_group_operations(request, groups)
    return ShareGroupDescribeResponse(groups=groups)
