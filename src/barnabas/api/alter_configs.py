"""AlterConfigs (key 33), versions 0-2. Control plane.

- Replaces a resource's whole configuration; what is not named returns to its default. Deprecated in favour of
  IncrementalAlterConfigs, still sent by librdkafka.
- Any broker takes it; the active controller answers, after its records are committed.

v1 throttle time; v2 flexible.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import AlterConfigsRequest, AlterConfigsResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: AlterConfigsRequest) -> asyncio.Future[AlterConfigsResponse]:
    return forward(context, request)
