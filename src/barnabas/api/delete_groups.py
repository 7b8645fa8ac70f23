"""DeleteGroups (API key 42, versions 0-3).

- An empty group is deleted with its offsets; other groups get NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND.
- The share coordinator's state of a share group is deleted first; a group whose state cannot be deleted stays. This continues to its end
  if the client closes its connection.

Version 1 answers before it throttles, 2 is flexible, 3 adds the error message.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.api.serving.context import BrokerServices, RequestContext
from barnabas.group import requests
from barnabas.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.steps import shielded
from barnabas.turns import RECORD, pace


async def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete groups."""
    services = context.services
    if services.share.coordinator.is_in_use:
        results = await shielded(_delete_with_states(services, request.groups_names), services.loop)
    else:
        results = await requests.delete_groups(services.group_coordinator, request.groups_names)
    return DeleteGroupsResponse(results=results)


async def _delete_with_states(services: BrokerServices, group_ids: Sequence[str]) -> list[requests.DeletedGroup]:
    failed = await services.share.groups.delete_states(group_ids)
    rest: list[str] = []
    for group_id in group_ids:
        await pace(RECORD)
        if group_id not in failed:
            rest.append(group_id)
    deleted = await requests.delete_groups(services.group_coordinator, rest)
    return [*(requests.DeletedGroup(group_id=group_id, error_code=code) for group_id, code in failed.items()), *deleted]
