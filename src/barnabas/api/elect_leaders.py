"""ElectLeaders (key 43), versions 0-2. Control plane.

- Preferred and unclean elections; with one replica every election answers ELECTION_NOT_NEEDED.
- Any broker takes it; the active controller answers, after its records are committed.

v1 election type (KIP-460); v2 flexible.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: ElectLeadersRequest) -> asyncio.Future[ElectLeadersResponse]:
    return forward(context, request)
