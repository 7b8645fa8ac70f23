"""The response to a heartbeat of a streams group's member.

- Its tasks, if it joins, if they have changed, or if it reports other tasks while reconciling or at an old epoch, because it missed the
  last response. (Kafka leaves this case to the rebalance timeout.) A stable member at its epoch has received its tasks, and gets none, as
  from Kafka.
- All endpoints, if it has an older epoch of them; the epoch grows when a member with an endpoint gets other tasks.
- Statuses: what keeps the application from running, and a shutdown that a member has requested.

Source: KIP-1071; Kafka class `GroupMetadataManager` (the end of `streamsGroupHeartbeat`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.group.epoch_group import JOIN_EPOCH
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.member import MemberState, StreamsGroupMember
from barnabas.group.streams.tasks import Tasks, TasksTuple, tasks_of, without_epochs
from barnabas.group.streams.topic_configuration import ConfiguredTopology, PartitionCount, StreamsStatus
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

CLIENT_TAGS_STATUS_SINCE = 1


@dataclass(slots=True)
class StreamsAnswer:
    """The parts of a response.

    Attributes:
        member: before the request.
        updated: after it.
        replaced: the static member that it replaces.
    """

    group: StreamsGroup
    request: StreamsGroupHeartbeatRequest
    version: int
    member: StreamsGroupMember
    updated: StreamsGroupMember
    replaced: StreamsGroupMember | None
    statuses: list[StreamsGroupHeartbeatResponse.Status] = field(default_factory=list)

    def say(self, status: StreamsStatus, detail: str) -> None:
        """Add a status."""
        self.statuses.append(StreamsGroupHeartbeatResponse.Status(status_code=status, status_detail=detail))

    @property
    def joining(self) -> bool:
        return self.request.member_epoch == JOIN_EPOCH


def build_response(
    answer: StreamsAnswer,
    configured: ConfiguredTopology,
    env: GroupEnvironment,
    rack_tags: tuple[str, ...],
    partition_count: PartitionCount,
) -> StreamsGroupHeartbeatResponse:
    """Build the response to a heartbeat; it starts with `answer.statuses`."""
    group, member, updated = answer.group, answer.member, answer.updated
    group_id, configs = group.group_id, env.group_configs
    response = StreamsGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=configs.int_value(group_id, "streams.heartbeat.interval.ms"),
        task_offset_interval_ms=configs.int_value(group_id, "streams.task.offset.interval.ms"),
        acceptable_recovery_lag=configs.int_value(group_id, "streams.acceptable.recovery.lag"),
    )
    tasks_changed = member.assigned != updated.assigned
    if answer.joining or tasks_changed or _has_other_tasks(answer):
        response.active_tasks = _ids(without_epochs(updated.assigned.active))
        response.standby_tasks = _ids(updated.assigned.standby)
        response.warmup_tasks = _ids(updated.assigned.warmup)
    _tell_endpoints(answer, configured, response, partition_count, env, tasks_changed=tasks_changed)
    if configured.problem is not None:
        answer.say(configured.problem.status, configured.problem.detail)
    if group.shutdown_requested_by is not None:
        answer.say(
            StreamsStatus.SHUTDOWN_APPLICATION,
            f"Streams group member {group.shutdown_requested_by} encountered a fatal error and requested a "
            "shutdown for the entire application.",
        )
    if answer.version >= CLIENT_TAGS_STATUS_SINCE:
        missing = [tag for tag in rack_tags if tag not in updated.client_tags]
        if missing:
            answer.say(
                StreamsStatus.MISSING_CLIENT_TAGS,
                f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
                "Configure them via 'client.tag.<tagKey>' in your Streams config.",
            )
    response.status = answer.statuses
    return response


def _has_other_tasks(answer: StreamsAnswer) -> bool:
    """Return whether the member reports other tasks than it was assigned, because it missed a response."""
    request = answer.request
    if answer.updated.state is MemberState.STABLE and request.member_epoch == answer.updated.member_epoch:
        return False
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return False
    owned = TasksTuple(tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks))
    return not owned.same_tasks(answer.updated.assigned)


def _tell_endpoints(
    answer: StreamsAnswer,
    configured: ConfiguredTopology,
    response: StreamsGroupHeartbeatResponse,
    partition_count: PartitionCount,
    env: GroupEnvironment,
    *,
    tasks_changed: bool,
) -> None:
    group, updated, replaced = answer.group, answer.updated, answer.replaced
    endpoint_changed = answer.member.user_endpoint != updated.user_endpoint
    if answer.joining or tasks_changed or endpoint_changed or replaced is not None:
        group.endpoints.forget(updated.member_id)
        if replaced is not None:
            group.endpoints.forget(replaced.member_id)
    if endpoint_changed or (tasks_changed and updated.user_endpoint is not None):
        group.endpoint_epoch += 1
    if group.endpoint_epoch != answer.request.endpoint_information_epoch:
        gone = {updated.member_id, "" if replaced is None else replaced.member_id}
        members = [member for member_id, member in group.members.items() if member_id not in gone]
        response.partitions_by_user_endpoint = group.endpoints.of(
            [*members, updated], configured.subtopologies or {}, partition_count
        )
        group.endpoints.forget(updated.member_id)  # The replay of its records computes them again.
    if group.group_id in env.groups:
        response.endpoint_information_epoch = group.endpoint_epoch


def _ids(tasks: Tasks) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    return [
        StreamsGroupHeartbeatResponse.TaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]
