"""What a StreamsGroupHeartbeat request must look like before its group is looked at (control plane, pure).

The first complaint counts, in Kafka's order. The sentences are those that Kafka's clients log.

Source: Kafka class `GroupCoordinatorService` (`throwIfStreamsGroupHeartbeatRequestIsInvalid` and its neighbours).
"""

from __future__ import annotations

from barnabas.group.streams.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse a request that no group could answer.

    Raises: KafkaError INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.
    """
    if request.topology is not None and any(s.source_topic_regex for s in request.topology.subtopologies):
        _refuse("Regular expressions for source topics are not supported yet.")
    if not request.member_id.strip():
        _refuse("MemberId can't be empty.")
    if not request.group_id.strip():
        _refuse("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        _refuse("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        _refuse("RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            _refuse("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        _refuse(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(kind is None for kind in tasks) and not all(kind is None for kind in tasks):
        _refuse("If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH and request.topology is not None:
        _refuse("Topology can only be provided when (re-)joining.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        _refuse("RebalanceTimeoutMs must be provided in first request.")
    if request.active_tasks is None or request.active_tasks:
        _refuse("ActiveTasks must be empty when (re-)joining.")
    if request.standby_tasks is None or request.standby_tasks:
        _refuse("StandbyTasks must be empty when (re-)joining.")
    if request.warmup_tasks is None or request.warmup_tasks:
        _refuse("WarmupTasks must be empty when (re-)joining.")
    if request.topology is None:
        _refuse("Topology must be non-null when (re-)joining.")
        return
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}.",
                )


def _refuse(message: str) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, message)
