"""AlterPartitionReassignments (key 45), versions 0-1. Control plane.

- Moves partitions to other replicas, or cancels such a move (KIP-455).
- Any broker takes it; the active controller answers, after its records are committed.

v1 may refuse a change of the replication factor (KIP-860).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

__all__ = ["handle"]


def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> asyncio.Future[AlterPartitionReassignmentsResponse]:
    return forward(context, request)
