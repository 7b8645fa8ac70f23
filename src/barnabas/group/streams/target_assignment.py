"""When a streams group's target assignment is computed, and from what.

The target follows the group epoch, but with a delay: the first assignment of an empty group waits `streams.initial.rebalance.delay.ms` for
more members, and two computations are at least `streams.assignment.interval.ms` apart. Until then the old target stands.

Without a topology that is ready no member gets tasks.

Source: Kafka class `GroupMetadataManager` (`maybeUpdateStreamsTargetAssignment`), `TargetAssignmentBuilder`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams import records
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.member import MemberTaskOffsets, StreamsGroupMember
from barnabas.group.streams.task_assignor import AssignableSubtopology, AssignmentMember, assign
from barnabas.group.streams.tasks import TasksTuple, without_epochs
from barnabas.group.streams.timers import StreamsTimers
from barnabas.group.streams.topic_configuration import ConfiguredTopology, StreamsStatus

logger = logging.getLogger(__name__)

STANDBY_REPLICAS = "num.standby.replicas"
RACK_TAGS = "rack.aware.assignment.tags"

Say = Callable[[StreamsStatus, str], None]


class StreamsAssignments:
    """Computes the target assignments of one shard's streams groups."""

    def __init__(self, env: GroupEnvironment, timers: StreamsTimers) -> None:
        self._env = env
        self._timers = timers

    def settings(self, group_id: str) -> dict[str, str]:
        """The settings on which the assignment depends, as they are written with the group epoch."""
        standby = self._env.group_configs.int_value(group_id, "streams.num.standby.replicas")
        found = {STANDBY_REPLICAS: str(standby)}
        tags = self.rack_tags(group_id)
        if tags:
            found[RACK_TAGS] = ",".join(tags)
        return found

    def rack_tags(self, group_id: str) -> tuple[str, ...]:
        """The client tags that every member should have."""
        value = self._env.group_configs.value(group_id, "streams.rack.aware.assignment.tags")
        return tuple(str(tag) for tag in value) if isinstance(value, tuple) else ()

    def update(
        self,
        group: StreamsGroup,
        group_epoch: int,
        updated: StreamsGroupMember | None,
        configured: ConfiguredTopology,
        settings: Mapping[str, str],
        out: list[CoordinatorRecord],
        say: Say,
    ) -> tuple[int, Mapping[str, TasksTuple]]:
        """Return the target assignment; compute it if it is behind the group epoch and the interval is over.

        Args:
            group_epoch: that the group is about to have.
            updated: the member of this heartbeat as it is about to be.
            out: gets the records of a new target.
            say: adds a status to the response.
        """
        if self._timers.is_delayed(group.group_id):
            say(StreamsStatus.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
            return group.assignment_epoch, {}
        target = _target_with(group, updated)
        if group.assignment_epoch >= group_epoch:
            return group.assignment_epoch, target
        interval_ms = self._env.group_configs.int_value(group.group_id, "streams.assignment.interval.ms")
        now_ms = self._env.now_ms()
        # A time of 0 means that there is no assignment to keep a distance from.
        if group.assignment_timestamp_ms and now_ms < group.assignment_timestamp_ms + interval_ms:
            say(StreamsStatus.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            return group.assignment_epoch, target
        members = _members_with(group, updated)
        new = _compute(group, members, configured, int(settings[STANDBY_REPLICAS]))
        for member_id, tasks in new.items():
            if target.get(member_id) != tasks:
                out.append(records.target_assignment_record(group.group_id, member_id, tasks))
        out.append(records.target_assignment_metadata_record(group.group_id, group_epoch, now_ms))
        return group_epoch, new

    def delayed(self, group_id: str) -> CoordinatorResult[None]:
        """Assign tasks to the members that have joined: the initial delay is over."""
        group = self._env.find(group_id, StreamsGroup)
        if group is None or group.is_empty or group.group_epoch <= group.assignment_epoch:
            return CoordinatorResult(None)
        configured = group.configured_topology
        if configured is None:
            return CoordinatorResult(None)  # The next heartbeat configures the topology, and assigns.
        out: list[CoordinatorRecord] = []
        settings = group.assignment_configs or self.settings(group_id)
        self.update(group, group.group_epoch, None, configured, settings, out, lambda status, detail: None)
        return CoordinatorResult(None, out)


def _replaced(group: StreamsGroup, updated: StreamsGroupMember | None) -> str | None:
    """Return the id of the static member that the updated one replaces."""
    if updated is None or updated.instance_id is None:
        return None
    before = group.static_members.get(updated.instance_id)
    return None if before == updated.member_id else before


def _members_with(group: StreamsGroup, updated: StreamsGroupMember | None) -> dict[str, StreamsGroupMember]:
    """The members as they will be with this heartbeat's."""
    members = dict(group.members)
    members.pop(_replaced(group, updated) or "", None)
    if updated is not None:
        members[updated.member_id] = updated
    return members


def _target_with(group: StreamsGroup, updated: StreamsGroupMember | None) -> Mapping[str, TasksTuple]:
    """The target as it stands; a returning static member has that of the one it replaces."""
    before = _replaced(group, updated)
    if updated is None or before is None or before not in group.target_assignment:
        return group.target_assignment
    target = dict(group.target_assignment)
    target[updated.member_id] = target.pop(before)
    return target


def _compute(
    group: StreamsGroup, members: Mapping[str, StreamsGroupMember], configured: ConfiguredTopology, standby: int
) -> dict[str, TasksTuple]:
    if not configured.is_ready:
        return dict.fromkeys(members, TasksTuple())
    assert configured.subtopologies is not None, configured
    none = MemberTaskOffsets()
    return assign(
        {
            member_id: AssignmentMember(
                member.process_id,
                without_epochs(member.assigned.active),
                member.assigned.standby,
                group.task_offsets.get(member_id, none).offsets,
            )
            for member_id, member in members.items()
        },
        {name: AssignableSubtopology(s.tasks, s.is_stateful) for name, s in configured.subtopologies.items()},
        standby,
    )
