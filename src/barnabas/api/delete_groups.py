"""DeleteGroups (API key 42). Control plane.

Versions served: 0-3.

- An empty group is deleted with its offsets; NON_EMPTY_GROUP and GROUP_ID_NOT_FOUND otherwise, group by group.
- Of a share group the share coordinator's state goes first; a group whose state cannot be deleted stays.

Version 1 answers before it throttles, 2 is flexible, 3 adds the error message.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped, when_done
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.steps import start

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle(context: RequestContext, request: DeleteGroupsRequest) -> asyncio.Future[DeleteGroupsResponse]:
    """Delete groups."""
    services = context.services
    if not services.share.coordinator.is_in_use:
        deleted = services.group_coordinator.delete_groups(request.groups_names)
        return mapped(services.loop, deleted, lambda results: DeleteGroupsResponse(results=results))
    answer: asyncio.Future[DeleteGroupsResponse] = services.loop.create_future()

    def on_states(done: asyncio.Future[dict[str, ErrorCode]]) -> None:
        failed = done.result()
        refused = [_Result(group_id=group_id, error_code=code) for group_id, code in failed.items()]
        rest = [group_id for group_id in request.groups_names if group_id not in failed]
        when_done(
            services.group_coordinator.delete_groups(rest),
            lambda deleted: answer.set_result(DeleteGroupsResponse(results=[*refused, *deleted.result()])),
        )

    when_done(start(services.share.groups.delete_states(request.groups_names), services.loop), on_states)
    return answer
