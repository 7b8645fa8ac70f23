"""ReadShareGroupState (API key 84): a partition's leader reads the state it goes on from. Control plane.

Versions served: 0. State that has not been begun: INVALID_REQUEST. An older leader epoch: FENCED_LEADER_EPOCH; a newer one is
noted, and fences the older leaders.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.api.share_group_state import answer_each
from barnabas.protocol.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.share.state_records import ShareGroupOffset


def handle(context: RequestContext, request: ReadShareGroupStateRequest) -> asyncio.Future[Any]:
    """Read each partition."""
    coordinator = context.services.share.coordinator
    return answer_each(
        context,
        request,
        ReadShareGroupStateResponse,
        ReadShareGroupStateResponse.ReadStateResult,
        lambda key, asked: coordinator.read(key, asked.leader_epoch),
        _fill,
    )


def _fill(result: ReadShareGroupStateResponse.PartitionResult, state: ShareGroupOffset) -> None:
    result.state_epoch = state.state_epoch
    result.start_offset = state.start_offset
    result.state_batches = [ReadShareGroupStateResponse.StateBatch(**batch._asdict()) for batch in state.state_batches]
