"""InitializeShareGroupState (API key 83, version 0): start new states of share partitions.

Start offset -1 leaves the start to the partition's leader. An older state epoch gets FENCED_STATE_EPOCH.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_group_state import answer_each
from barnabas.protocol.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


async def handle(
    context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    """Initialize each partition."""
    coordinator = context.services.share.coordinator
    return await answer_each(
        context,
        request,
        InitializeShareGroupStateResponse,
        InitializeShareGroupStateResponse.InitializeStateResult,
        lambda key, asked: coordinator.initialize(key, asked.state_epoch, asked.start_offset),
    )
