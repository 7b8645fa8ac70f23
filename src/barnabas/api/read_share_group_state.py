"""ReadShareGroupState (API key 84, version 0): a partition's leader reads the state that it continues.

A state that was not initialized gets INVALID_REQUEST, an older leader epoch FENCED_LEADER_EPOCH. A newer leader
epoch is written, which fences older leaders.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_group_state import answer_each
from barnabas.protocol.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from barnabas.share.state_records import ShareGroupOffset


async def handle(context: RequestContext, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    """Read each partition."""
    coordinator = context.services.share.coordinator
    return await answer_each(
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
