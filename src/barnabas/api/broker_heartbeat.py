"""BrokerHeartbeat (API key 63, versions 0-2): a broker says that it lives, and how far it has read the metadata.

- A controller that is too busy for half an interval lets the heartbeat time out, as Kafka's does: the next one is on its way.
- The active controller responds after its records are committed (KIP-631).

Version 1 adds offline directories (KIP-858), 2 cordoned ones (KIP-1066).
"""

from __future__ import annotations

from barnabas.api.serving.context import ControllerContext
from barnabas.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def handle(context: ControllerContext, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    services, connection = context.services, context.connection
    services.heard(request.broker_id, request.broker_epoch, connection)
    response: BrokerHeartbeatResponse = await services.controller.handle(
        context.api_key,
        context.version,
        request,
        principal=connection.principal,
        deadline_ms=services.now_ms() + services.config.int_value("broker.heartbeat.interval.ms") // 2,
    )
    return response
