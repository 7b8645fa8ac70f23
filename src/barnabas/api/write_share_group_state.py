"""WriteShareGroupState (API key 85, versions 0-1): a partition's leader writes the delivery states of records.

An older leader epoch gets FENCED_LEADER_EPOCH, an older state epoch FENCED_STATE_EPOCH. Version 1 adds the number
of finished records (KIP-1226).
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.api.share_group_state import answer_each
from barnabas.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from barnabas.share.share_coordinator_shard import StateWrite
from barnabas.share.state_records import state_batches


async def handle(context: RequestContext, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    """Write each partition."""
    coordinator = context.services.share.coordinator
    return await answer_each(
        context,
        request,
        WriteShareGroupStateResponse,
        WriteShareGroupStateResponse.WriteStateResult,
        lambda key, asked: coordinator.write(
            key,
            StateWrite(
                asked.state_epoch,
                asked.leader_epoch,
                asked.start_offset,
                asked.delivery_complete_count,
                state_batches(asked.state_batches),
            ),
        ),
    )
