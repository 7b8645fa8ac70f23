"""InitializeShareGroupState (API key 83): begin share partitions' state anew. Control plane.

Versions served: 0. Start offset -1 leaves the start to the partition's leader. An older state epoch: FENCED_STATE_EPOCH.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.api.share_group_state import answer_each
from barnabas.protocol.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


def handle(context: RequestContext, request: InitializeShareGroupStateRequest) -> asyncio.Future[Any]:
    """Initialize each partition."""
    coordinator = context.services.share.coordinator
    return answer_each(
        context,
        request,
        InitializeShareGroupStateResponse,
        InitializeShareGroupStateResponse.InitializeStateResult,
        lambda key, asked: coordinator.initialize(key, asked.state_epoch, asked.start_offset),
    )
