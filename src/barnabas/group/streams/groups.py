"""StreamsGroups: the part of a shard that serves streams groups.

    StreamsHeartbeats   heartbeats: join, tasks, leave        ──┐
    StreamsTimers       sessions, revocations, first delay    ──┴─> records ──> StreamsReplay ──> StreamsGroup

Source: KIP-1071; Kafka class `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams import records
from barnabas.group.streams.group import NO_ASSIGNMENT_EPOCH, StreamsGroup
from barnabas.group.streams.heartbeat import StreamsHeartbeats
from barnabas.group.streams.member import MemberState, StreamsGroupMember
from barnabas.group.streams.task_assignor import STICKY
from barnabas.group.streams.tasks import TasksTuple, tasks_of
from barnabas.group.streams.timers import StreamsTimers
from barnabas.group.streams.topology import StreamsTopology
from barnabas.protocol.messages import StreamsGroupDescribeResponse


class StreamsGroups:
    """The streams groups of one shard."""

    def __init__(self, env: GroupEnvironment) -> None:
        self._env = env
        self._timers = StreamsTimers(env)
        self.heartbeat = StreamsHeartbeats(env, self._timers).handle
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {
            records.STREAMS_GROUP_METADATA: self._group_metadata,
            records.STREAMS_GROUP_MEMBER_METADATA: self._member_metadata,
            records.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: self._target_metadata,
            records.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: self._target_member,
            records.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: self._current_assignment,
            records.STREAMS_GROUP_TOPOLOGY: self._topology,
        }

    def describe(self, group_id: str) -> StreamsGroupDescribeResponse.DescribedGroup:
        """Describe a group for StreamsGroupDescribe. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        return self._env.require(group_id, StreamsGroup).describe(STICKY)

    def on_loaded(self, group: Group) -> None:
        """Start the timers of the loaded members."""
        assert isinstance(group, StreamsGroup), group
        self._timers.watch_loaded(group)

    def on_unloaded(self, group: Group) -> None:
        """Do nothing: no request waits inside a streams group."""

    def _group(self, group_id: str) -> StreamsGroup:
        """Return the group; create it if it is missing."""
        group = self._env.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        assert group is None or isinstance(group, ClassicGroup), f"{group!r} is not a streams group"
        new = self._env.groups[group_id] = StreamsGroup(group_id)
        return new

    def _existing(self, group_id: str) -> StreamsGroup | None:
        return self._env.find(group_id, StreamsGroup)

    def _topology(self, record: CoordinatorRecord) -> None:
        group_id, value = record.key.group_id, record.value
        group = self._group(group_id) if value is not None else self._existing(group_id)
        if group is None:
            return
        before = frozenset[str]() if group.topology is None else group.topology.required_topics
        group.set_topology(None if value is None else StreamsTopology(value))
        after = frozenset[str]() if group.topology is None else group.topology.required_topics
        for topic in sorted(before - after):
            self._env.subscribers.remove(group_id, topic)
        for topic in sorted(after - before):
            self._env.subscribers.add(group_id, topic)

    def _group_metadata(self, record: CoordinatorRecord) -> None:
        group_id, value = record.key.group_id, record.value
        if value is not None:
            group = self._group(group_id)
            group.set_metadata(
                value.epoch,
                value.metadata_hash,
                value.validated_topology_epoch,
                {config.key: config.value for config in value.last_assignment_configs or ()},
            )
            self._env.history.begun(group_id, value.epoch)
            return
        existing = self._existing(group_id)
        if existing is None:
            return
        assert not existing.members, f"{existing!r} is deleted with members"
        assert existing.assignment_epoch == NO_ASSIGNMENT_EPOCH, f"{existing!r} is deleted with a target assignment"
        if existing.topology is not None:
            for topic in existing.topology.required_topics:
                self._env.subscribers.remove(group_id, topic)
        self._timers.cancel_initial_delay(group_id)
        self._env.history.forget(group_id)
        del self._env.groups[group_id]

    def _member_metadata(self, record: CoordinatorRecord) -> None:
        group_id, member_id, value = record.key.group_id, record.key.member_id, record.value
        if value is not None:
            group = self._group(group_id)
            group.update_member(self._member(group, member_id).with_metadata(value))
            return
        existing = self._existing(group_id)
        if existing is None or member_id not in existing.members:
            return
        member = existing.members[member_id]
        assert member.member_epoch == -1, f"{member!r} is removed with an assignment"
        assert member_id not in existing.target_assignment, f"{member!r} is removed with a target assignment"
        existing.remove_member(member_id)
        self._timers.cancel_member(group_id, member_id)
        if not existing.members:
            self._env.history.ended(group_id, 0)

    def _target_metadata(self, record: CoordinatorRecord) -> None:
        group_id, value = record.key.group_id, record.value
        if value is None:
            existing = self._existing(group_id)
            if existing is not None:
                assert not existing.target_assignment, f"{existing!r} still has target assignments"
                existing.set_assignment_metadata(NO_ASSIGNMENT_EPOCH, 0)
            return
        group = self._group(group_id)
        group.set_assignment_metadata(value.assignment_epoch, value.assignment_timestamp)
        rebalances = self._env.history.of(group_id)
        if not rebalances or rebalances[-1].ended_ms is not None:
            return  # Read from the log: the rebalance is over.
        target = {
            member_id: frozenset((name, index) for name, indexes in tasks.active.items() for index in indexes)
            for member_id, tasks in group.target_assignment.items()
        }
        self._env.history.moved(group_id, group.active_holdings(), target)

    def _target_member(self, record: CoordinatorRecord) -> None:
        group_id, member_id, value = record.key.group_id, record.key.member_id, record.value
        if value is not None:
            tasks = TasksTuple(
                tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
            )
            self._group(group_id).update_target_assignment(member_id, tasks)
            return
        existing = self._existing(group_id)
        if existing is not None:
            existing.remove_target_assignment(member_id)

    def _current_assignment(self, record: CoordinatorRecord) -> None:
        group_id, member_id, value = record.key.group_id, record.key.member_id, record.value
        if value is not None:
            group = self._group(group_id)
            member = self._member(group, member_id).with_assignment(value)
            group.update_member(member)
            if member.state is MemberState.STABLE and member.is_reconciled_to(group.assignment_epoch):
                self._end_if_stable(group)
            return
        existing = self._existing(group_id)
        if existing is not None and member_id in existing.members:
            existing.update_member(existing.members[member_id].without_assignment())

    def _end_if_stable(self, group: StreamsGroup) -> None:
        if group.state_name() == "Stable":
            self._env.history.ended(group.group_id, group.member_count)

    @staticmethod
    def _member(group: StreamsGroup, member_id: str) -> StreamsGroupMember:
        return group.members.get(member_id) or StreamsGroupMember(member_id)
