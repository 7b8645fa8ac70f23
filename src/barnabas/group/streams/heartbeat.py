"""StreamsGroupHeartbeat: joining, staying in and leaving a streams group.

    request ──> member (new, known, or a static one that returns) ──> topology and its topics ──> group epoch, if something changed
            ──> target assignment, if it is behind ──> the member's next step towards it ──> records and response

- Missing internal topics are named in the result; the API handler creates them through the controller.
- The group epoch grows with: a member's metadata, topics' metadata, the topology being validated, the assignment settings.

Limits: tasks are not warmed up before they move; Kafka 4.4 has the settings for it, but does not do it either. The topology of a group
cannot be changed; Kafka rejects that too.

Sources: KIP-1071; Kafka class `GroupMetadataManager` (`streamsGroupHeartbeat` and what it calls).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.epoch_group import LEAVE_EPOCH, METADATA_REFRESH_MS, STATIC_LEAVE_EPOCH
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.sender import Sender
from barnabas.group.streams import records
from barnabas.group.streams.answer import StreamsAnswer, build_response
from barnabas.group.streams.group import NOT_VALIDATED, StreamsGroup, StreamsGroupState
from barnabas.group.streams.member import MemberState, MemberTaskOffsets
from barnabas.group.streams.membership import StreamsMembership, concerns_assignment
from barnabas.group.streams.reconciliation import reconcile
from barnabas.group.streams.target_assignment import StreamsAssignments
from barnabas.group.streams.tasks import EMPTY_TASKS, TasksTuple, tasks_of
from barnabas.group.streams.timers import StreamsTimers
from barnabas.group.streams.topic_configuration import (
    ConfiguredInternalTopic,
    ConfiguredTopology,
    StreamsStatus,
    configure_topics,
)
from barnabas.group.streams.topology import StreamsTopology, topology_value
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

logger = logging.getLogger(__name__)

"""Topics are checked when they change; Kafka has a deadline too, which never passes."""


class StreamsHeartbeatResult(NamedTuple):
    """The response, and the internal topics that must be created for the application to run."""

    response: StreamsGroupHeartbeatResponse
    to_create: Mapping[str, ConfiguredInternalTopic] = {}


@dataclass(slots=True)
class _Beat:
    """The state of one heartbeat while it is handled."""

    group: StreamsGroup
    request: StreamsGroupHeartbeatRequest
    answer: StreamsAnswer
    records: list[CoordinatorRecord]
    causes: list[str] = field(default_factory=list)
    """Why the group's epoch grows."""


class StreamsHeartbeats:
    """Handles StreamsGroupHeartbeat for the groups of one shard."""

    def __init__(self, env: GroupEnvironment, timers: StreamsTimers) -> None:
        self._env = env
        self._timers = timers
        self._assignments = StreamsAssignments(env, timers)
        self._membership = StreamsMembership(env, timers)

    def handle(
        self, request: StreamsGroupHeartbeatRequest, sender: Sender
    ) -> CoordinatorResult[StreamsHeartbeatResult]:
        """Handle a request that is valid in itself.

        Raises: KafkaError GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID,
            GROUP_MAX_SIZE_REACHED, STREAMS_INVALID_TOPOLOGY, INVALID_REQUEST.
        """
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request)
        beat = self._begin(request, sender)
        group = beat.group
        topology = self._topology(beat)
        if group.topology is not None and beat.answer.updated.topology_epoch < group.topology.epoch:
            beat.answer.say(
                StreamsStatus.STALE_TOPOLOGY,
                f"The member's topology epoch {beat.answer.updated.topology_epoch} is behind the group's topology epoch "
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
            group, epoch, beat.answer.updated, configured, settings, beat.records, beat.answer.say
        )
        self._reconcile(beat, target_epoch, target.get(request.member_id, EMPTY_TASKS))
        self._timers.watch_session(group.group_id, request.member_id)
        if request.shutdown_application:
            group.shutdown_requested_by = group.shutdown_requested_by or request.member_id
        response = build_response(
            beat.answer, configured, self._env, self._assignments.rack_tags(group.group_id), self._partition_count
        )
        to_create = {} if configured.is_ready else configured.to_create
        return CoordinatorResult(StreamsHeartbeatResult(response, to_create), beat.records)

    def _begin(self, request: StreamsGroupHeartbeatRequest, sender: Sender) -> _Beat:
        out: list[CoordinatorRecord] = []
        group = self._membership.group_of(request, out)
        member, replaced = self._membership.member_of(group, request, out)
        updated = member.updated_by(request, sender)
        answer = StreamsAnswer(group, request, sender.version, member, updated, replaced)
        if answer.joining:
            logger.info("streams group %s: member %s joins", group.group_id, request.member_id)
        beat = _Beat(group, request, answer, out)
        if updated != member:
            out.append(records.member_metadata_record(group.group_id, updated))
            if request.instance_id is None or concerns_assignment(member, updated):
                beat.causes.append(f"member {request.member_id} {'joined' if answer.joining else 'changed'}")
        return beat

    def _leave(self, request: StreamsGroupHeartbeatRequest) -> CoordinatorResult[StreamsHeartbeatResult]:
        group = self._env.require(request.group_id, StreamsGroup)
        if request.shutdown_application:
            group.shutdown_requested_by = group.shutdown_requested_by or request.member_id
        response = StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, status=[]
        )
        return CoordinatorResult(StreamsHeartbeatResult(response), self._membership.leave(group, request))

    def _topology(self, beat: _Beat) -> StreamsTopology:
        """Return the group's topology, which the first member sends."""
        group, described = beat.group, beat.request.topology
        if described is None:
            if group.topology is None:
                # Only a group that was read from a damaged log has members and no topology; they must join again.
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
        """Return the topology configured with the present topics."""
        group, now_ms = beat.group, self._env.now_ms()
        known = group.configured_topology
        if known is not None and not group.has_metadata_expired(now_ms):
            return known
        metadata_hash = group.compute_metadata_hash(topology.required_topics, self._env.topic_hashes, self._env.image())
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

    def _partition_count(self, topic: str) -> int | None:
        known = self._env.image().topics.by_name.get(topic)
        return None if known is None else len(known.partitions)

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
        self._env.history.because(
            group.group_id, epoch, causes, beat.answer.updated.member_id, beat.answer.updated.client_id
        )
        group.set_metadata_refresh_deadline(self._env.now_ms() + METADATA_REFRESH_MS, epoch)

    def _maybe_delay(self, group: StreamsGroup) -> None:
        if group.state is StreamsGroupState.EMPTY:
            delay_ms = self._env.group_configs.int_value(group.group_id, "streams.initial.rebalance.delay.ms")
            if delay_ms > 0:
                group_id = group.group_id
                self._timers.begin_initial_delay(group_id, delay_ms, lambda: self._assignments.delayed(group_id))

    def _reconcile(self, beat: _Beat, target_epoch: int, target: TasksTuple) -> None:
        if beat.answer.updated.is_reconciled_to(target_epoch):
            return
        group_id, request = beat.group.group_id, beat.request
        owned = None
        if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
            owned = TasksTuple(
                tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks)
            )
        next_member = reconcile(beat.answer.updated, target_epoch, target, beat.group.owners(), owned)
        if next_member == beat.answer.updated:
            return
        beat.answer.updated = next_member
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
