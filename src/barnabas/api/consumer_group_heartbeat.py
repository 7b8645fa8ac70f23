"""ConsumerGroupHeartbeat (API key 68, versions 0-1).

- The one request of the consumer protocol: joins with epoch 0, stays, leaves with -1, leaves for a while with -2 (static members).
- Null fields mean "as before"; the response has an assignment if it has changed, or if the request describes the member in full.
- UNSUPPORTED_VERSION unless `group.coordinator.rebalance.protocols` has consumer and group.version is finalized at 1 or above.
- A fault of the request itself is INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, with a message, before the group is read.

Version 0 lets the coordinator make the member id; from 1 the client makes it (KIP-1082), and may subscribe by an RE2 expression (KIP-848).
"""

from __future__ import annotations

from barnabas.api.authorization.members import check_member
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.excess import check_subscription
from barnabas.group.consumer import requests
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

GROUP_VERSION = "group.version"
CONSUMER_PROTOCOL = "consumer"


def check_consumer_groups_enabled(context: RequestContext) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION if the consumer protocol is disabled."""
    services = context.services
    protocols = services.config.list_value("group.coordinator.rebalance.protocols")
    if CONSUMER_PROTOCOL not in protocols or not services.image().features.level(GROUP_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


async def handle(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Answer a member of a consumer group."""
    check_consumer_groups_enabled(context)
    await check_member(context.asker, request.group_id, request.subscribed_topic_names)
    await check_subscription(context, request.subscribed_topic_names)
    return await requests.heartbeat(context.services.group_coordinator, request, context.sender)
