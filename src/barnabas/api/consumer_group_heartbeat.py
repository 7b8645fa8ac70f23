"""ConsumerGroupHeartbeat (API key 68). Control plane.

Versions served: 0-1.

- The one request of the consumer protocol: joins with epoch 0, stays, leaves with -1, leaves for a while with -2 (static members).
- Null fields mean "as before"; an assignment is answered when it has changed, or when the member has told all about itself.
- UNSUPPORTED_VERSION unless `group.coordinator.rebalance.protocols` has consumer and group.version is finalized at 1 or above.
- What is wrong with the request itself is INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, with a sentence, before the group is looked at.

Version 0 lets the coordinator make the member id; from 1 the client makes it (KIP-1082), and may subscribe by an RE2 expression (KIP-848).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.api.context import RequestContext
from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.future_steps import answered
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

GROUP_VERSION = "group.version"
CONSUMER_PROTOCOL = "consumer"
CLIENT_MEMBER_ID_SINCE = 1
STATIC_LEAVE_EPOCH, LEAVE_EPOCH, JOIN_EPOCH = -2, -1, 0


def check_consumer_groups_enabled(context: RequestContext) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION when the consumer protocol is switched off."""
    services = context.services
    protocols = services.config.list_value("group.coordinator.rebalance.protocols")
    if CONSUMER_PROTOCOL not in protocols or not services.image().features.level(GROUP_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> asyncio.Future[ConsumerGroupHeartbeatResponse] | ConsumerGroupHeartbeatResponse:
    """Answer a member of a consumer group."""
    check_consumer_groups_enabled(context)
    services = context.services
    try:
        check_request(request, context.version, services.group_coordinator.consumer_assignors)
    except KafkaError as error:
        return _refused(error)
    from barnabas.group.consumer.heartbeat import Beating

    # As Java prints an address without a name.
    beating = Beating(request, context.client_id or "", f"/{context.connection.peer_host}")
    written = services.group_coordinator.write(request.group_id, lambda shard: shard.consumer_group_heartbeat(beating))
    return answered(services.loop, written, lambda response: response, _refused)


def _refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=append_error(error), error_message=append_message(error))


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Refuse a request that no group could accept.

    Raises: KafkaError INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    if version >= CLIENT_MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _not_empty(request.member_id, "MemberId can't be empty.")
    _not_empty(request.group_id, "GroupId can't be empty.")
    _not_empty(request.instance_id, "InstanceId can't be empty.")
    _not_empty(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _not_empty(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(message)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
