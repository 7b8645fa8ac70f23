"""ShareGroupDescribe (API key 77, version 1): share groups with their members.

- The response has the groups in the order of the request. A missing group, or one of another type, gets GROUP_ID_NOT_FOUND with a message.
- Authorized operations on request: all operations on a group, as there is no authorizer.

Version 1 is KIP-932; version 0, its early access, is not served.
"""

from __future__ import annotations

from barnabas.api.authorization.members import describe_share_groups
from barnabas.api.serving.authorized_operations import add_group_operations
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import check_share_groups_enabled
from barnabas.protocol.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse


async def handle(context: RequestContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe share groups."""
    check_share_groups_enabled(context)
    find = context.services.share.groups.describe
    asker = context.asker
    if asker is None:
        groups = await find(request.group_ids)
        await add_group_operations(request, groups)
    else:
        groups = await describe_share_groups(asker, request.group_ids, find, request.include_authorized_operations)
    return ShareGroupDescribeResponse(groups=groups)
