"""StreamsGroupTopologyDescriptionUpdate (API key 93, version 0).

A broker with a plugin for topology descriptions stores what members send. This one has none, like Kafka by default: it never asks for a
description, and rejects one with UNSUPPORTED_VERSION.

Version 0 is new in Kafka 4.4 (KIP-1331).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.streams_group_heartbeat import check_streams_enabled
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from barnabas.security.acls import AclOperation, ResourceType


async def handle(
    context: RequestContext, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Reject a topology description."""
    check_streams_enabled(context)
    if (asker := context.asker) is not None:
        asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="The broker has no streams group topology description plugin configured.",
    )
