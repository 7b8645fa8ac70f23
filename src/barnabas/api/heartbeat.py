"""Heartbeat (API key 12, versions 0-4).

- A member of the present generation gets NONE, or REBALANCE_IN_PROGRESS if it must rejoin.
- While the coordinator loads the group it returns NONE, so that no member rejoins.
- The order of the errors is Kafka's: group, member, instance, generation.

Version 1 adds the throttle time, 3 the group instance id (KIP-345), 4 is flexible.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group.classic import requests
from barnabas.protocol.messages import HeartbeatRequest, HeartbeatResponse


async def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Renew a member's session."""
    return await requests.heartbeat(context.services.group_coordinator, request, context.sender)
