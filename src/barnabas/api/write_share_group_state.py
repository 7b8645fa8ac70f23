"""WriteShareGroupState (API key 85, versions 0-1): a partition's leader writes the delivery states of records.

An older leader epoch gets FENCED_LEADER_EPOCH, an older state epoch FENCED_STATE_EPOCH. Deviation: INVALID_REQUEST for a partition
with more than `BATCHES_MAX` batches, because to combine them holds the loop. Version 1 adds the number of finished records (KIP-1226).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_group_state import answer_each
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from barnabas.share.share_coordinator_shard import StateWrite
from barnabas.share.state_records import SharePartitionKey, state_batches

BATCHES_MAX = 10_000
"""Of one partition: no group may have more of its records in flight, and each batch is at least one of them."""


async def handle(context: RequestContext, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    """Write each partition."""
    coordinator = context.services.share.coordinator

    async def write(key: SharePartitionKey, asked: WriteShareGroupStateRequest.PartitionData) -> None:
        if len(asked.state_batches) > BATCHES_MAX:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"A partition has at most {BATCHES_MAX} state batches.")
        batches = state_batches(asked.state_batches)
        await coordinator.write(
            key,
            StateWrite(
                asked.state_epoch, asked.leader_epoch, asked.start_offset, asked.delivery_complete_count, batches
            ),
        )

    return await answer_each(
        context, request, WriteShareGroupStateResponse, WriteShareGroupStateResponse.WriteStateResult, write
    )
