"""StreamsGroupDescribe (API key 89). Control plane.

Versions served: 0-1.

- A group that is not there, or is of another type: GROUP_ID_NOT_FOUND with a message; an empty id: INVALID_GROUP_ID.
- The topology has its internal topics' partitions once they are decided, else 0 where the application left them open.
- There is no topology description plugin, so that no description is ever stored (KIP-1331).
- Authorized operations on request: all that a group has, as there is no authorizer.
- Groups are answered in the order asked.

Version 1 adds the assignor's name and the topology description.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.describe_groups import GROUP_OPERATIONS
from barnabas.api.streams_group_heartbeat import check_streams_enabled
from barnabas.coordinator.future_steps import mapped
from barnabas.group.streams import service as streams_service
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

NO_DESCRIPTION_STORED = 1


def handle(
    context: RequestContext, request: StreamsGroupDescribeRequest
) -> asyncio.Future[StreamsGroupDescribeResponse]:
    """Describe streams groups."""
    check_streams_enabled(context)
    services = context.services

    def response(groups: list[StreamsGroupDescribeResponse.DescribedGroup]) -> StreamsGroupDescribeResponse:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                if request.include_authorized_operations:
                    group.authorized_operations = GROUP_OPERATIONS
                if request.include_topology_description:
                    group.topology_description_status = NO_DESCRIPTION_STORED
        return StreamsGroupDescribeResponse(groups=groups)

    described = streams_service.describe(services.group_coordinator, services.loop, request.group_ids)
    return mapped(services.loop, described, response)
