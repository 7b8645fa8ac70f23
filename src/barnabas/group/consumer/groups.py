"""ConsumerGroups: the groups of KIP-848 in one shard.

It joins the parts (`ConsumerGroupHeartbeat`, `ClassicMembers`, `GroupMigration`, their steps and timers) over the shard's groups, and moves
the groups' state in `replay`.

On load every member gets a session from now, and a rebalance timeout if it has partitions to revoke. No request waits inside a consumer
group, so none is answered on unload.

Source: Kafka class `GroupMetadataManager`, its consumer part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.classic.groups import ClassicGroups
from barnabas.group.consumer import records as records_of
from barnabas.group.consumer.classic_members import ClassicMembers
from barnabas.group.consumer.group import ConsumerGroup, ConsumerGroupState
from barnabas.group.consumer.heartbeat import ConsumerGroupHeartbeat
from barnabas.group.consumer.member import ConsumerGroupMember, MemberState
from barnabas.group.consumer.migration import GroupMigration
from barnabas.group.consumer.rebalance import ConsumerGroupRebalance
from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.group.consumer.timers import ConsumerGroupTimers
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment
from barnabas.protocol.messages import (
    ConsumerGroupDescribeResponse,
)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
"""The names of the two protocols' members in ConsumerGroupDescribe 1."""


class ConsumerGroups:
    """One shard's consumer groups.

    Attributes:
        classic_members: serves those members that speak the classic protocol.
    """

    def __init__(self, environment: GroupEnvironment, classic: ClassicGroups) -> None:
        self._environment = environment
        timers = self._timers = ConsumerGroupTimers(environment)
        rebalance = ConsumerGroupRebalance(environment, timers)
        self._growth = rebalance.growth
        migration = GroupMigration(environment, classic, timers)
        timers.fence = migration.fence
        self.heartbeat = ConsumerGroupHeartbeat(environment, rebalance, timers, migration).handle
        self.classic_members = ClassicMembers(environment, rebalance, timers, migration)
        # The target assignment before the step that is being replayed, by group: for the history.
        self._targets_before: dict[str, dict[str, Assignment]] = {}
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {
            records_of.METADATA: self._replay_epoch,
            records_of.PARTITION_METADATA: self._replay_partition_metadata,
            records_of.MEMBER_METADATA: self._replay_member,
            records_of.TARGET_ASSIGNMENT_METADATA: self._replay_target_epoch,
            records_of.TARGET_ASSIGNMENT_MEMBER: self._replay_target,
            records_of.CURRENT_MEMBER_ASSIGNMENT: self._replay_current,
            records_of.REGULAR_EXPRESSION: self._replay_regex,
        }

    def __repr__(self) -> str:
        return f"<ConsumerGroups {self._environment.partition}>"

    def describe(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """Describe a group for ConsumerGroupDescribe. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        group = self._environment.require(group_id, ConsumerGroup)
        return ConsumerGroupDescribeResponse.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state_name(),
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.preferred_assignor() or self._environment.config.group_consumer_assignors[0],
            members=[self._describe_member(group, member) for member in group.members.values()],
        )

    def _describe_member(
        self, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> ConsumerGroupDescribeResponse.Member:
        held: dict[bytes, list[int]] = {}
        for assignment in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assignment.items():
                held.setdefault(topic_id, []).extend(sorted(partitions))
        target = group.target_assignment.get(member.member_id, NO_ASSIGNMENT)
        return ConsumerGroupDescribeResponse.Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            assignment=self._described(held),
            target_assignment=self._described({topic_id: sorted(indexes) for topic_id, indexes in target.items()}),
            member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
        )

    def _described(self, assignment: Mapping[bytes, list[int]]) -> ConsumerGroupDescribeResponse.Assignment:
        """Return the partitions of existing topics, with their names."""
        topics = self._environment.image().topics
        return ConsumerGroupDescribeResponse.Assignment(
            topic_partitions=[
                ConsumerGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=topics.by_id[topic_id].name, partitions=partitions
                )
                for topic_id, partitions in assignment.items()
                if topic_id in topics.by_id
            ]
        )

    def _group(self, record: CoordinatorRecord) -> ConsumerGroup | None:
        """Return the group of a record; a value creates a missing group, a tombstone does not."""
        group_id = record.key.group_id
        group = self._environment.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if record.value is None:
            return None
        # Offsets that were committed first have made a simple group of this id.
        assert group is None or (isinstance(group, ClassicGroup) and group.is_simple), group
        group = self._environment.groups[group_id] = ConsumerGroup(group_id, self._environment.subscribers)
        return group

    def _replay_epoch(self, record: CoordinatorRecord) -> None:
        group = self._group(record)
        if group is None:
            return
        if record.value is None:
            assert not group.members, f"{group!r} is deleted with members"
            group.unsubscribe_all()
            del self._environment.groups[group.group_id]
            self._targets_before.pop(group.group_id, None)
            return
        group.set_group_epoch(record.value.epoch, record.value.metadata_hash)
        self._environment.history.begun(group.group_id, record.value.epoch)
        self._maybe_settled(group)

    def _replay_partition_metadata(self, record: CoordinatorRecord) -> None:
        group = self._group(record)
        if group is not None:
            group.has_partition_metadata_record = record.value is not None

    def _replay_member(self, record: CoordinatorRecord) -> None:
        group, member_id = self._group(record), record.key.member_id
        if group is None:
            return
        if record.value is None:
            group.remove_member(member_id)
        else:
            member = group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
            group.update_member(member.with_metadata(record.value))
        self._maybe_settled(group)

    def _replay_target_epoch(self, record: CoordinatorRecord) -> None:
        group = self._group(record)
        if group is None:
            return
        if record.value is None:
            group.set_target_assignment_metadata(-1, 0)
            return
        group.set_target_assignment_metadata(record.value.assignment_epoch, record.value.assignment_timestamp)
        before = self._targets_before.pop(group.group_id, None)
        if before is not None:
            named = self._environment.named
            self._environment.history.moved(group.group_id, named(before), named(group.target_assignment))
        self._maybe_settled(group)

    def _replay_target(self, record: CoordinatorRecord) -> None:
        group, member_id = self._group(record), record.key.member_id
        if group is None:
            return
        if self._environment.is_loaded:
            self._targets_before.setdefault(group.group_id, dict(group.target_assignment))
        if record.value is None:
            group.remove_target_assignment(member_id)
        else:
            group.update_target_assignment(
                member_id,
                {topic.topic_id: frozenset(topic.partitions) for topic in record.value.topic_partitions},
            )

    def _replay_current(self, record: CoordinatorRecord) -> None:
        group, member_id = self._group(record), record.key.member_id
        if group is None:
            return
        member = group.members.get(member_id)
        if record.value is not None:
            member = member or ConsumerGroupMember(member_id=member_id)
            group.update_member(member.with_assignment(record.value))
        elif member is not None:
            group.update_member(member.without_assignment())
        self._maybe_settled(group)

    def _replay_regex(self, record: CoordinatorRecord) -> None:
        group = self._group(record)
        if group is None:
            return
        value = record.value
        resolved = (
            None
            if value is None
            else ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp)
        )
        group.update_regex(record.key.regular_expression, resolved)

    def on_loaded(self, group: Group) -> None:
        """Start the timers of the loaded members."""
        assert isinstance(group, ConsumerGroup), group
        for member in group.members.values():
            self._timers.schedule_session(group.group_id, member)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._timers.schedule_rebalance(group.group_id, member)
        self._growth.watch(group.group_id, group.subscribed_topic_names)

    def on_unloaded(self, group: Group) -> None:
        """Do nothing: no request waits inside a consumer group."""

    def _maybe_settled(self, group: ConsumerGroup) -> None:
        if not self._environment.history.is_open(group.group_id):
            return
        if group.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            self._environment.history.ended(group.group_id, len(group.members))
