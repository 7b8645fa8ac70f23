"""CreateTopics (key 19), versions 2-7. Control plane.

- Partitions and replication factor -1 take the broker's defaults (v4, KIP-464).
- Errors are per topic; a name that occurs twice in a request is refused as a whole topic, as in Kafka.
- Any broker takes it; the active controller answers, after its records are committed.

v4 defaults -1; v5 the created topic's configuration in the answer (KIP-525); v7 the topic id (KIP-516).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: CreateTopicsRequest) -> asyncio.Future[CreateTopicsResponse]:
    return forward(context, request)
