"""IncrementalAlterConfigs (key 44), versions 0-1. Control plane.

- Sets, deletes, appends to and subtracts from single settings of topics, brokers, groups and client metrics (KIP-339).
- Each resource succeeds or fails as a whole.
- Any broker takes it; the active controller answers, after its records are committed.

v1 flexible.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

__all__ = ["handle"]


def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> asyncio.Future[IncrementalAlterConfigsResponse]:
    return forward(context, request)
