"""UnregisterBroker (key 64), version 0. Control plane.

- Forgets a broker that is gone for good (KIP-631).
- Any broker takes it; the active controller answers, after its records are committed.

v0 only.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> asyncio.Future[UnregisterBrokerResponse]:
    return forward(context, request)
