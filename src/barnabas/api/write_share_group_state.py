"""WriteShareGroupState (API key 85): a partition's leader writes down what has become of records. Control plane.

Versions served: 0-1. An older leader epoch: FENCED_LEADER_EPOCH, an older state epoch: FENCED_STATE_EPOCH. Version 1 adds how many
records are finished (KIP-1226).
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.api.share_group_state import answer_each
from barnabas.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from barnabas.share.share_coordinator_shard import StateWrite, state_batches


def handle(context: RequestContext, request: WriteShareGroupStateRequest) -> asyncio.Future[Any]:
    """Write each partition."""
    coordinator = context.services.share.coordinator
    return answer_each(
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
