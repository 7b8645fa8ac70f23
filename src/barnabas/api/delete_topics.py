"""DeleteTopics (key 20), versions 1-6. Control plane.

- By name, or from v6 by id; errors are per topic.
- Any broker takes it; the active controller answers, after its records are committed.

v5 error messages; v6 topic ids (KIP-516).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: DeleteTopicsRequest) -> asyncio.Future[DeleteTopicsResponse]:
    return forward(context, request)
