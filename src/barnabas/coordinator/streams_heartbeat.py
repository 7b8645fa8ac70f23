"""One heartbeat of a streams group's member: what it changes, and what it is told (control plane).

    request ──> member (new, known, or a static one that returns) ──> topology and its topics ──> group epoch, if something changed
            ──> target assignment, if it is behind ──> the member's next step towards it ──> records and response

- The response lists the member's tasks when it joins or when they have changed; endpoints when it knows an older epoch of them.
- What is wrong but not the member's fault is told as statuses: missing topics, a delayed assignment, a shutdown that another
  member asked for.
- Missing internal topics are named in the result; whoever sent the request creates them through the controller.
- The group epoch grows with: a member's metadata, topics' metadata, the topology being validated, the assignment settings.

Limits: tasks are not warmed up before they move (the field is carried along); Kafka 4.4 has the settings for it, and hands the target on as
it is. A topology cannot be changed while the group has one; Kafka refuses that too.

Sources: KIP-1071; Kafka class `GroupMetadataManager` (`streamsGroupHeartbeat` and what it calls).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.coordinator import streams_records as records
from barnabas.coordinator.classic_group import ClassicGroup
from barnabas.coordinator.group_environment import GroupEnvironment
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.streams_group import NOT_VALIDATED, StreamsGroup, StreamsGroupState
from barnabas.coordinator.streams_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    MemberState,
    MemberTaskOffsets,
    StreamsGroupMember,
)
from barnabas.coordinator.streams_reconciliation import reconcile
from barnabas.coordinator.streams_target_assignment import StreamsAssignments
from barnabas.coordinator.streams_tasks import (
    EMPTY_TASKS,
    EMPTY_TASKS_WITH_EPOCHS,
    Tasks,
    TasksTuple,
    tasks_of,
    without_epochs,
)
from barnabas.coordinator.streams_timers import StreamsTimers
from barnabas.coordinator.streams_topic_configuration import (
    ConfiguredInternalTopic,
    ConfiguredTopology,
    StreamsStatus,
    configure_topics,
)
from barnabas.coordinator.streams_topology import StreamsTopology, topology_value
from barnabas.coordinator.topic_hash import group_hash, topic_hash
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

logger = logging.getLogger(__name__)

METADATA_REFRESH_MS = 2_147_483_647
"""Topics are looked at when they change; a deadline that never comes keeps Kafka's shape."""
CLIENT_TAGS_STATUS_SINCE = 1

TaskIds = StreamsGroupHeartbeatRequest.TaskIds


class StreamsHeartbeat(NamedTuple):
    """A request with what is known of its sender."""

    request: StreamsGroupHeartbeatRequest
    version: int
    client_id: str
    client_host: str


class StreamsHeartbeatResult(NamedTuple):
    """The answer, and the internal topics that must be created for the application to run."""

    response: StreamsGroupHeartbeatResponse
    to_create: Mapping[str, ConfiguredInternalTopic] = {}


@dataclass(slots=True)
class _Beat:
    """A heartbeat on its way: the member as it was and as it is to be, and what has come together so far."""

    heartbeat: StreamsHeartbeat
    group: StreamsGroup
    member: StreamsGroupMember
    updated: StreamsGroupMember
    replaced: StreamsGroupMember | None
    records: list[CoordinatorRecord]
    causes: list[str] = field(default_factory=list)
    statuses: list[StreamsGroupHeartbeatResponse.Status] = field(default_factory=list)

    def say(self, status: StreamsStatus, detail: str) -> None:
        self.statuses.append(StreamsGroupHeartbeatResponse.Status(status_code=status, status_detail=detail))


class StreamsHeartbeats:
    """Answers the heartbeats of one shard's streams groups."""

    def __init__(self, env: GroupEnvironment, timers: StreamsTimers) -> None:
        self._env = env
        self._timers = timers
        self._assignments = StreamsAssignments(env, timers)

    def handle(self, heartbeat: StreamsHeartbeat) -> CoordinatorResult[StreamsHeartbeatResult]:
        """Answer one heartbeat.

        Raises: KafkaError GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID,
            GROUP_MAX_SIZE_REACHED, STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST.
        """
        if heartbeat.request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(heartbeat.request)
        beat = self._begin(heartbeat)
        group, request = beat.group, heartbeat.request
        topology = self._topology(beat)
        if group.topology is not None and beat.updated.topology_epoch < group.topology.epoch:
            beat.say(
                StreamsStatus.STALE_TOPOLOGY,
                f"The member's topology epoch {beat.updated.topology_epoch} is behind the group's topology epoch "
                f"{group.topology.epoch}.",
            )
        configured = self._configure(beat, topology)
        validated_epoch = NOT_VALIDATED
        if configured.is_ready:
            validated_epoch = topology.epoch
            _check_tasks(configured, request)
        self._report_offsets(group, request)
        if validated_epoch != group.validated_topology_epoch:
            beat.causes.append("the topology's topics are there" if configured.is_ready else "topics are missing")
        settings = self._assignments.settings(group.group_id)
        if not beat.causes and settings != group.assignment_configs:
            beat.causes.append("the assignment settings changed")
        epoch = group.group_epoch
        if beat.causes:
            epoch += 1
            self._bump(beat, epoch, configured.metadata_hash, validated_epoch, settings)
        self._maybe_delay(group)
        target_epoch, target = self._assignments.update(
            group, epoch, beat.updated, configured, settings, beat.records, beat.say
        )
        self._reconcile(beat, target_epoch, target.get(request.member_id, EMPTY_TASKS))
        self._timers.watch_session(group.group_id, request.member_id)
        if request.shutdown_application:
            group.shutdown_requested_by = group.shutdown_requested_by or request.member_id
        response = self._response(beat, configured)
        to_create = {} if configured.is_ready else configured.to_create
        return CoordinatorResult(StreamsHeartbeatResult(response, to_create), beat.records)

    # -- the member --------------------------------------------------------------------------------------------------

    def _begin(self, heartbeat: StreamsHeartbeat) -> _Beat:
        request = heartbeat.request
        out: list[CoordinatorRecord] = []
        joining = request.member_epoch == JOIN_EPOCH
        if joining:
            group = self._group_to_join(request.group_id, out)
            self._check_size(group, request)
        else:
            group = self._env.require(request.group_id, StreamsGroup)
        replaced = None
        if request.instance_id is None:
            default = StreamsGroupMember(request.member_id)
            member = group.members.get(request.member_id, default) if joining else group.member(request.member_id)
            _check_epoch(member, request)
        else:
            before = group.static_member(request.instance_id)
            if before is not None and before.member_id != request.member_id:
                replaced = before
            member = self._static_member(group, before, request, out)
        if joining:
            logger.info("streams group %s: member %s joins", group.group_id, request.member_id)
        updated = member.updated_by(request, heartbeat.client_id, heartbeat.client_host)
        beat = _Beat(heartbeat, group, member, updated, replaced, out)
        if updated != member:
            out.append(records.member_metadata_record(group.group_id, updated))
            if request.instance_id is None or _concerns_assignment(member, updated):
                beat.causes.append(f"member {request.member_id} {'joined' if joining else 'changed'}")
        return beat

    def _group_to_join(self, group_id: str, out: list[CoordinatorRecord]) -> StreamsGroup:
        """The group of a joining member; an empty classic group of that id gives way to a new one."""
        group = self._env.groups.get(group_id)
        if group is None:
            return StreamsGroup(group_id)
        if isinstance(group, ClassicGroup) and group.is_empty:
            out += group.tombstones()
            return StreamsGroup(group_id)
        return self._env.require(group_id, StreamsGroup)

    def _check_size(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
        limit = self._env.config.group_streams_max_size
        known = request.instance_id in group.static_members or group.has_member(request.member_id)
        if not known and group.member_count >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )

    def _static_member(
        self,
        group: StreamsGroup,
        before: StreamsGroupMember | None,
        request: StreamsGroupHeartbeatRequest,
        out: list[CoordinatorRecord],
    ) -> StreamsGroupMember:
        """The member of an instance id; one that returns takes over the tasks it left with."""
        if request.member_epoch != JOIN_EPOCH:
            member = _known_static(before, request)
            _check_epoch(member, request)
            return member
        if before is None:
            return group.members.get(request.member_id, StreamsGroupMember(request.member_id))
        if before.member_epoch != STATIC_LEAVE_EPOCH:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group "
                f"because the instance id is owned by {before.member_id} member.",
            )
        member = replace(before, member_id=request.member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
        group_id = group.group_id
        out += records.removed_member_tombstones(group_id, before.member_id)
        out.append(records.member_metadata_record(group_id, member))
        target = group.target_assignment.get(before.member_id, EMPTY_TASKS)
        out.append(records.target_assignment_record(group_id, member.member_id, target))
        out.append(records.current_assignment_record(group_id, member))
        return member

    # -- the topology ------------------------------------------------------------------------------------------------

    def _topology(self, beat: _Beat) -> StreamsTopology:
        """The group's topology; the first member's request brings it."""
        group, described = beat.group, beat.heartbeat.request.topology
        if described is None:
            if group.topology is None:
                # Only a group that was read from a damaged log has members and no topology; they must join anew.
                raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "The group has no topology.")
            return group.topology
        value = topology_value(described)
        topology = StreamsTopology(value)
        if group.topology is None:
            beat.records.append(records.topology_record(group.group_id, value))
            return topology
        if group.topology.epoch > topology.epoch:
            return group.topology
        if group.topology != topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return group.topology

    def _configure(self, beat: _Beat, topology: StreamsTopology) -> ConfiguredTopology:
        """What the topology amounts to with the topics that there are now."""
        group, now_ms = beat.group, self._env.now_ms()
        known = group.configured_topology
        if known is not None and not group.has_metadata_expired(now_ms):
            return known
        metadata_hash = self._metadata_hash(topology)
        if metadata_hash != group.metadata_hash:
            beat.causes.append("topics changed")
            known = None
        if known is not None:
            return known
        configured = configure_topics(topology, self._partition_count, metadata_hash)
        if configured.problem is not None:
            logger.info("streams group %s: %s", group.group_id, configured.problem.detail)
        group.set_configured_topology(configured)
        return configured

    def _metadata_hash(self, topology: StreamsTopology) -> int:
        image, hashes, found = self._env.image(), self._env.topic_hashes, {}
        for name in topology.required_topics:
            topic = image.topics.by_name.get(name)
            if topic is not None:
                if name not in hashes:
                    hashes[name] = topic_hash(topic, image.cluster)
                found[name] = hashes[name]
        return group_hash(found)

    def _partition_count(self, topic: str) -> int | None:
        known = self._env.image().topics.by_name.get(topic)
        return None if known is None else len(known.partitions)

    # -- epochs and assignment ---------------------------------------------------------------------------------------

    def _bump(
        self, beat: _Beat, epoch: int, metadata_hash: int, validated_epoch: int, settings: Mapping[str, str]
    ) -> None:
        group = beat.group
        beat.records.append(
            records.group_metadata_record(
                group.group_id,
                epoch,
                metadata_hash=metadata_hash,
                validated_topology_epoch=validated_epoch,
                assignment_configs=settings,
            )
        )
        causes = ", ".join(dict.fromkeys(beat.causes))
        self._env.history.because(group.group_id, epoch, causes, beat.updated.member_id, beat.updated.client_id)
        group.set_metadata_refresh_deadline(self._env.now_ms() + METADATA_REFRESH_MS, epoch)

    def _maybe_delay(self, group: StreamsGroup) -> None:
        if group.state is StreamsGroupState.EMPTY:
            delay_ms = self._env.group_configs.int_value(group.group_id, "streams.initial.rebalance.delay.ms")
            if delay_ms > 0:
                group_id = group.group_id
                self._timers.begin_initial_delay(group_id, delay_ms, lambda: self._assignments.delayed(group_id))

    def _reconcile(self, beat: _Beat, target_epoch: int, target: TasksTuple) -> None:
        if beat.updated.is_reconciled_to(target_epoch):
            return
        group_id, request = beat.group.group_id, beat.heartbeat.request
        owned = None
        if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
            owned = TasksTuple(
                tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks)
            )
        next_member = reconcile(beat.updated, target_epoch, target, beat.group.owners(), owned)
        if next_member == beat.updated:
            return
        beat.updated = next_member
        beat.records.append(records.current_assignment_record(group_id, next_member))
        if next_member.state is MemberState.UNREVOKED_TASKS:
            self._timers.watch_revocation(group_id, next_member)
        else:
            self._timers.cancel_revocation(group_id, next_member.member_id)

    @staticmethod
    def _report_offsets(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
        if request.task_offsets is None and request.task_end_offsets is None:
            return
        known = group.task_offsets.get(request.member_id, MemberTaskOffsets())
        try:
            group.task_offsets[request.member_id] = known.updated_by(request)
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

    # -- the answer --------------------------------------------------------------------------------------------------

    def _response(self, beat: _Beat, configured: ConfiguredTopology) -> StreamsGroupHeartbeatResponse:
        group, member, updated = beat.group, beat.member, beat.updated
        group_id, configs = group.group_id, self._env.group_configs
        response = StreamsGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=configs.int_value(group_id, "streams.heartbeat.interval.ms"),
            task_offset_interval_ms=configs.int_value(group_id, "streams.task.offset.interval.ms"),
            acceptable_recovery_lag=configs.int_value(group_id, "streams.acceptable.recovery.lag"),
        )
        joining = beat.heartbeat.request.member_epoch == JOIN_EPOCH
        tasks_changed = member.assigned != updated.assigned
        if joining or tasks_changed:
            response.active_tasks = _ids(without_epochs(updated.assigned.active))
            response.standby_tasks = _ids(updated.assigned.standby)
            response.warmup_tasks = _ids(updated.assigned.warmup)
        self._tell_endpoints(beat, configured, response, joining=joining, tasks_changed=tasks_changed)
        if configured.problem is not None:
            beat.say(configured.problem.status, configured.problem.detail)
        if group.shutdown_requested_by is not None:
            beat.say(
                StreamsStatus.SHUTDOWN_APPLICATION,
                f"Streams group member {group.shutdown_requested_by} encountered a fatal error and requested a "
                "shutdown for the entire application.",
            )
        if beat.heartbeat.version >= CLIENT_TAGS_STATUS_SINCE:
            missing = [tag for tag in self._assignments.rack_tags(group_id) if tag not in updated.client_tags]
            if missing:
                beat.say(
                    StreamsStatus.MISSING_CLIENT_TAGS,
                    f"Missing required client tags for rack-aware standby assignment: [{', '.join(missing)}]. "
                    "Configure them via 'client.tag.<tagKey>' in your Streams config.",
                )
        response.status = beat.statuses
        return response

    def _tell_endpoints(
        self,
        beat: _Beat,
        configured: ConfiguredTopology,
        response: StreamsGroupHeartbeatResponse,
        *,
        joining: bool,
        tasks_changed: bool,
    ) -> None:
        group, updated, replaced = beat.group, beat.updated, beat.replaced
        endpoint_changed = beat.member.user_endpoint != updated.user_endpoint
        if joining or tasks_changed or endpoint_changed or replaced is not None:
            group.endpoints.forget(updated.member_id)
            if replaced is not None:
                group.endpoints.forget(replaced.member_id)
        if endpoint_changed or (tasks_changed and updated.user_endpoint is not None):
            group.endpoint_epoch += 1
        if group.endpoint_epoch != beat.heartbeat.request.endpoint_information_epoch:
            gone = {updated.member_id, "" if replaced is None else replaced.member_id}
            members = [member for member_id, member in group.members.items() if member_id not in gone]
            response.partitions_by_user_endpoint = group.endpoints.of(
                [*members, updated], configured.subtopologies or {}, self._partition_count
            )
        if group.group_id in self._env.groups:
            response.endpoint_information_epoch = group.endpoint_epoch

    # -- leaving -----------------------------------------------------------------------------------------------------

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> CoordinatorResult[StreamsHeartbeatResult]:
        group = self._env.require(request.group_id, StreamsGroup)
        if request.shutdown_application:
            group.shutdown_requested_by = group.shutdown_requested_by or request.member_id
        response = StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, status=[]
        )
        result = StreamsHeartbeatResult(response)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = _known_static(group.static_member(request.instance_id), request)
            if request.member_epoch == STATIC_LEAVE_EPOCH:
                away = replace(
                    member,
                    member_epoch=STATIC_LEAVE_EPOCH,
                    assigned=member.assigned.with_active_epochs_of(0),
                    pending_revocation=EMPTY_TASKS_WITH_EPOCHS,
                )
                return CoordinatorResult(result, [records.current_assignment_record(group.group_id, away)])
        logger.info("streams group %s: member %s leaves", group.group_id, member.member_id)
        return CoordinatorResult(result, self._timers.removal(group, member, "it left"))


def _known_static(member: StreamsGroupMember | None, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if member.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _concerns_assignment(before: StreamsGroupMember, after: StreamsGroupMember) -> bool:
    """Whether a static member's change is more than its address."""

    def concern(member: StreamsGroupMember) -> tuple[object, ...]:
        return member.topology_epoch, member.rack_id, member.client_tags, member.process_id

    return concern(before) != concern(after)


def _check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Fence a member that is not where the coordinator knows it to be.

    The previous epoch is good enough while the member has nothing that it was not given: its last answer was lost.
    """
    received, known = request.member_epoch, member.member_epoch
    if received in (JOIN_EPOCH, known):
        return
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    assigned = (without_epochs(member.assigned.active), member.assigned.standby, member.assigned.warmup)
    if (
        received < known
        and received == member.previous_member_epoch
        and all(_contained(own, given) for own, given in zip(owned, assigned, strict=True))
    ):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {'greater' if received > known else 'smaller'} member epoch ({received}) than "
        f"the one known by the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _contained(owned: list[TaskIds] | None, assigned: Tasks) -> bool:
    if owned is None:
        return False
    return all(
        entry.subtopology_id in assigned and assigned[entry.subtopology_id].issuperset(entry.partitions)
        for entry in owned
    )


def _check_tasks(configured: ConfiguredTopology, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse tasks that the topology does not have."""
    assert configured.subtopologies is not None, configured
    for entry in (*(request.active_tasks or ()), *(request.standby_tasks or ()), *(request.warmup_tasks or ())):
        subtopology = configured.subtopologies.get(entry.subtopology_id)
        if subtopology is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Subtopology {entry.subtopology_id} does not exist in the topology."
            )
        for partition in entry.partitions:
            if not 0 <= partition < subtopology.tasks:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {entry.subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {subtopology.tasks}",
                )


def _ids(tasks: Tasks) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    return [
        StreamsGroupHeartbeatResponse.TaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]
