"""The requests of consumer groups: their checks, the operation on the group's shard, errors as responses.

The first fault of a request counts, in Kafka's order. The sentences are those that Kafka's clients log.

Source: Kafka class `GroupCoordinatorService` (`consumerGroupHeartbeat`, `consumerGroupDescribe`,
`throwIfConsumerGroupHeartbeatRequestIsInvalid`).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.group.epoch_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.request_checks import check_not_blank, invalid_request
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

DescribedGroup = ConsumerGroupDescribeResponse.DescribedGroup
CLIENT_MEMBER_ID_SINCE = 1


async def heartbeat(
    coordinator: GroupCoordinator, request: ConsumerGroupHeartbeatRequest, sender: Sender
) -> ConsumerGroupHeartbeatResponse:
    """Join, stay in or leave a group."""
    try:
        check_heartbeat(request, sender.version, coordinator.config.group_consumer_assignors)
        return await coordinator.write(request.group_id, lambda shard: shard.consumer.heartbeat(request, sender))
    except KafkaError as error:
        return ConsumerGroupHeartbeatResponse(error_code=append_error(error), error_message=append_message(error))


async def describe(coordinator: GroupCoordinator, group_ids: Sequence[str]) -> list[DescribedGroup]:
    """Describe groups in the order asked; an error is in its group's entry."""
    return await coordinator.describe(
        group_ids, DescribedGroup, lambda shard, group_id: shard.consumer.describe(group_id)
    )


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Reject a request that no group could accept.

    Args:
        assignors: the names that a member may ask for.

    Raises: KafkaError INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    if version >= CLIENT_MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        check_not_blank(request.member_id, "MemberId")
    check_not_blank(request.group_id, "GroupId")
    check_not_blank(request.instance_id, "InstanceId")
    check_not_blank(request.rack_id, "RackId")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise invalid_request("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise invalid_request(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )
