"""DeleteShareGroupState (API key 86): forget share partitions' state. Control plane.

Versions served: 0. State that is not there is forgotten already; no such topic or partition: UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.api.share_group_state import answer_each
from barnabas.protocol.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


def handle(context: RequestContext, request: DeleteShareGroupStateRequest) -> asyncio.Future[Any]:
    """Delete each partition's state."""
    coordinator = context.services.share.coordinator
    return answer_each(
        context,
        request,
        DeleteShareGroupStateResponse,
        DeleteShareGroupStateResponse.DeleteStateResult,
        lambda key, asked: coordinator.delete(key),
    )
