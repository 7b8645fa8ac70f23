"""StreamsGroupDescribe (API key 89, versions 0-1).

- A missing group, or one of another type: GROUP_ID_NOT_FOUND with a message; an empty id: INVALID_GROUP_ID.
- The topology has its internal topics' partitions once they are decided, else 0 where the application left them open.
- There is no topology description plugin, so no description is stored (KIP-1331).
- Authorized operations on request: all operations on a group, as there is no authorizer.
- The response has the groups in the order of the request.

Version 1 adds the assignor's name and the topology description.
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization.members import describe_streams_groups
from barnabas.api.serving.authorized_operations import add_group_operations
from barnabas.api.serving.context import RequestContext
from barnabas.api.streams_group_heartbeat import check_streams_enabled
from barnabas.group.streams import requests
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from barnabas.turns import RECORD, pace

NO_DESCRIPTION_STORED = 1


async def handle(context: RequestContext, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """Describe streams groups."""
    check_streams_enabled(context)
    find = partial(requests.describe, context.services.group_coordinator)
    asker = context.asker
    if asker is None:
        groups = await find(request.group_ids)
        await add_group_operations(request, groups)
    else:
        groups = await describe_streams_groups(asker, request.group_ids, find, request.include_authorized_operations)
    if request.include_topology_description:
        for group in groups:
            await pace(RECORD)
            if group.error_code == ErrorCode.NONE:
                group.topology_description_status = NO_DESCRIPTION_STORED
    return StreamsGroupDescribeResponse(groups=groups)
