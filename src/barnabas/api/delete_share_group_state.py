"""DeleteShareGroupState (API key 86, version 0): delete the states of share partitions.

A share partition without state succeeds; an unknown topic or partition gets UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_group_state import answer_each
from barnabas.protocol.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


async def handle(context: RequestContext, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    """Delete each partition's state."""
    coordinator = context.services.share.coordinator
    return await answer_each(
        context,
        request,
        DeleteShareGroupStateResponse,
        DeleteShareGroupStateResponse.DeleteStateResult,
        lambda key, asked: coordinator.delete(key),
    )
