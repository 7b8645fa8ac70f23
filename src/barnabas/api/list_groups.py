"""ListGroups (API key 16, versions 0-5).

- The groups that this broker coordinates; clients ask every broker.
- Filters by state and by type ignore case; an unknown state or type matches nothing.
- While a partition of `__consumer_offsets` is being loaded: COORDINATOR_LOAD_IN_PROGRESS.

Version 3 is flexible, 4 adds states (KIP-518), 5 types (KIP-848).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group import requests
from barnabas.protocol.messages import ListGroupsRequest, ListGroupsResponse


async def handle(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups."""
    return await requests.list_groups(context.services.group_coordinator, request)
