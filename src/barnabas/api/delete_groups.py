"""DeleteGroups (API key 42). Control plane.

Versions served: 0-3.

- An empty group is deleted with its offsets; NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND otherwise, group by group.

Version 1 answers before it throttles, 2 is flexible, 3 adds the error message.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(context: RequestContext, request: DeleteGroupsRequest) -> asyncio.Future[DeleteGroupsResponse]:
    """Delete groups."""
    deleted = context.services.group_coordinator.delete_groups(request.groups_names)
    return mapped(context.services.loop, deleted, lambda results: DeleteGroupsResponse(results=results))
