"""The requests of streams groups: their checks, the operation on the group's shard, errors as responses.

The first fault of a request counts, in Kafka's order. The sentences are those that Kafka's clients log.

Source: Kafka class `GroupCoordinatorService` (`streamsGroupHeartbeat`, `streamsGroupDescribe`,
`throwIfStreamsGroupHeartbeatRequestIsInvalid`).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.group.epoch_group import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.request_checks import check_not_blank, invalid_request
from barnabas.group.sender import Sender
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

DescribedGroup = StreamsGroupDescribeResponse.DescribedGroup


async def heartbeat(
    coordinator: GroupCoordinator, request: StreamsGroupHeartbeatRequest, sender: Sender
) -> StreamsHeartbeatResult:
    """Join, stay in or leave a group."""
    try:
        check_heartbeat(request)
        return await coordinator.write(request.group_id, lambda shard: shard.streams.heartbeat(request, sender))
    except KafkaError as error:
        code, message = append_error(error), append_message(error)
        return StreamsHeartbeatResult(StreamsGroupHeartbeatResponse(error_code=code, error_message=message))


async def describe(coordinator: GroupCoordinator, group_ids: Sequence[str]) -> list[DescribedGroup]:
    """Describe groups in the order asked; an error is in its group's entry."""
    return await coordinator.describe(
        group_ids, DescribedGroup, lambda shard, group_id: shard.streams.describe(group_id)
    )


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Reject a request that no group could accept.

    Raises: KafkaError INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.
    """
    if request.topology is not None and any(s.source_topic_regex for s in request.topology.subtopologies):
        raise invalid_request("Regular expressions for source topics are not supported yet.")
    check_not_blank(request.member_id, "MemberId")
    check_not_blank(request.group_id, "GroupId")
    check_not_blank(request.instance_id, "InstanceId")
    check_not_blank(request.rack_id, "RackId")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise invalid_request(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(kind is None for kind in tasks) and not all(kind is None for kind in tasks):
        raise invalid_request("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        raise invalid_request("Topology can only be provided when (re-)joining.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    if request.active_tasks is None or request.active_tasks:
        raise invalid_request("ActiveTasks must be empty when (re-)joining.")
    if request.standby_tasks is None or request.standby_tasks:
        raise invalid_request("StandbyTasks must be empty when (re-)joining.")
    if request.warmup_tasks is None or request.warmup_tasks:
        raise invalid_request("WarmupTasks must be empty when (re-)joining.")
    if request.topology is None:
        raise invalid_request("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}.",
                )
