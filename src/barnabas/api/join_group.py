"""JoinGroup (API key 11). Control plane.

Versions served: 0-9.

- The answer comes when the rebalance is complete; until then the connection has this request under way.
- The leader's answer lists the members with their metadata, the others' lists none.
- A dynamic member without an id gets MEMBER_ID_REQUIRED and an id from version 4.
- Errors found before the group is looked at: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT.
- Without a protocol its name is null, up to version 6 empty.

Version 1 adds the rebalance timeout (KIP-62), 4 the required member id (KIP-394), 5 the group instance id (KIP-345),
6 is flexible, 7 adds the protocol type (KIP-559), 8 the reason (KIP-800), 9 skip_assignment (KIP-814).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.messages import JoinGroupRequest, JoinGroupResponse

NULLABLE_PROTOCOL_NAME_SINCE = 7


def handle(context: RequestContext, request: JoinGroupRequest) -> asyncio.Future[JoinGroupResponse]:
    """Join a group, or rejoin it."""
    response = context.services.group_coordinator.join_group(
        request,
        context.version,
        context.client_id or "",
        f"/{context.connection.peer_host}",  # As Java prints an address without a name.
    )
    nullable = context.version >= NULLABLE_PROTOCOL_NAME_SINCE
    return mapped(context.services.loop, response, lambda answer: _with_protocol_name(answer, nullable))


def _with_protocol_name(response: JoinGroupResponse, nullable: bool) -> JoinGroupResponse:
    response.protocol_name = response.protocol_name or (None if nullable else "")
    return response
