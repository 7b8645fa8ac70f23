"""CreatePartitions (key 37), versions 0-3. Control plane.

- Raises the number of partitions of a topic, with or without an assignment; never lowers it.
- Any broker takes it; the active controller answers, after its records are committed.

v2 flexible; v3 the same bytes, quota errors may occur (KIP-599).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: CreatePartitionsRequest) -> asyncio.Future[CreatePartitionsResponse]:
    return forward(context, request)
