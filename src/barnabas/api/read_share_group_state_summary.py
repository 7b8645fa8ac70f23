"""ReadShareGroupStateSummary (API key 87, versions 0-1): start offsets and counts of share partitions.

Without a state the start offset and the count are -1, without an error. Version 1 adds the number of finished
records (KIP-1226).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_group_state import answer_each
from barnabas.protocol.messages import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse
from barnabas.share.share_coordinator_shard import StateSummary


async def handle(
    context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    """Read each partition's summary."""
    coordinator = context.services.share.coordinator
    return await answer_each(
        context,
        request,
        ReadShareGroupStateSummaryResponse,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
        lambda key, asked: coordinator.summary(key),
        _fill,
    )


def _fill(result: ReadShareGroupStateSummaryResponse.PartitionResult, summary: StateSummary) -> None:
    result.state_epoch = summary.state_epoch
    result.leader_epoch = summary.leader_epoch
    result.start_offset = summary.start_offset
    result.delivery_complete_count = summary.delivery_complete_count
