"""DescribeQuorum (key 55), versions 0-2. Control plane.

- Only `__cluster_metadata` partition 0 has a quorum (KIP-595).
- Any broker takes it; the active controller answers, after its records are committed.

v1 fetch times (KIP-836); v2 directory ids and listeners (KIP-853).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.api.forwarding import forward
from barnabas.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: DescribeQuorumRequest) -> asyncio.Future[DescribeQuorumResponse]:
    return forward(context, request)
