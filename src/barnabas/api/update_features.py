"""UpdateFeatures (key 57), versions 0-2. Control plane.

- Finalizes feature levels, or with validate-only checks them (KIP-584, KIP-778).
- Any broker takes it; the active controller answers, after its records are committed.

v1 upgrade type; v2 results only as one error for the whole request (KIP-1022).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: UpdateFeaturesRequest) -> asyncio.Future[UpdateFeaturesResponse]:
    return forward(context, request)
