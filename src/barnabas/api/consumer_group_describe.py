"""ConsumerGroupDescribe (API key 69, versions 0-1).

- Members have their assignment and their target, without partitions of deleted topics.
- A missing group, or one of another type: GROUP_ID_NOT_FOUND with a message.
- Authorized operations on request: all operations on a group, as there is no authorizer.
- UNSUPPORTED_VERSION as for ConsumerGroupHeartbeat.

Version 1 says which protocol a member speaks (KIP-1099).
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization.members import describe_consumer_groups
from barnabas.api.consumer_group_heartbeat import check_consumer_groups_enabled
from barnabas.api.serving.authorized_operations import add_group_operations
from barnabas.api.serving.context import RequestContext
from barnabas.group.consumer import requests
from barnabas.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


async def handle(context: RequestContext, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    """Describe groups of the consumer protocol, in the order asked."""
    check_consumer_groups_enabled(context)
    find = partial(requests.describe, context.services.group_coordinator)
    asker = context.asker
    if asker is None:
        groups = await find(request.group_ids)
        await add_group_operations(request, groups)
    else:
        groups = await describe_consumer_groups(asker, request.group_ids, find, request.include_authorized_operations)
    return ConsumerGroupDescribeResponse(groups=groups)
