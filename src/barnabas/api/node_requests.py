"""What brokers and controllers send to the active controller in their own name.

    AlterPartition         (API key 56, versions 2-3)   the leader of a partition proposes in-sync replicas (KIP-497);
                                                        2 adds topic ids (KIP-841), 3 the brokers' epochs (KIP-903)
    BrokerRegistration     (62, versions 0-4)           a broker that starts asks for its epoch (KIP-631); 1 adds ZooKeeper's migration,
                                                        2 directories (KIP-858), 3 the last epoch (KIP-966), 4 lowest feature level 0
    BrokerHeartbeat        (63, versions 0-2)           a broker says that it lives, and how far it has read the metadata;
                                                        1 adds offline directories (KIP-858), 2 cordoned ones (KIP-1066)
    AllocateProducerIds    (67, version 0)              a broker asks for a block of producer ids (KIP-730)
    ControllerRegistration (70, version 0)              a controller tells where it listens and what it supports (KIP-919)
    AssignReplicasToDirs   (73, version 0)              a broker tells in which of its directories replicas are (KIP-858)

- The active controller responds after its records are committed; any other one returns NOT_CONTROLLER.
- A controller that is too busy for half an interval lets a heartbeat time out, as Kafka's does: the next one is on its way.

Source: Kafka's `ControllerApis`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import ControllerContext
from barnabas.protocol.api_keys import ApiKey


def handle(context: ControllerContext, request: Any) -> asyncio.Future[Any]:
    services = context.services
    deadline_ms = None
    if context.api_key == ApiKey.BROKER_HEARTBEAT:
        deadline_ms = services.now_ms() + services.config.int_value("broker.heartbeat.interval.ms") // 2
    return services.controller.handle(
        context.api_key,
        context.version,
        request,
        principal=context.connection.principal,
        deadline_ms=deadline_ms,
        is_long=context.is_long,
    )
