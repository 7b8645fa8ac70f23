"""ListPartitionReassignments (key 46), version 0. Control plane.

- Names the partitions that are on the move (KIP-455); `kafka-topics --describe` always asks.
- Any broker takes it; the active controller answers, after its records are committed.

v0 only.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

__all__ = ["handle"]


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> asyncio.Future[ListPartitionReassignmentsResponse]:
    return forward(context, request)
