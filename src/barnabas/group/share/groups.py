"""ShareGroups: the share groups of one shard, and the state of their partitions.

Heartbeats are in `heartbeat` and `rebalance`, sessions in `timers`. The caller initializes and deletes the state of partitions in the share
coordinator, and comes back with `initialized` or `uninitialized`.

On load every member is given a session from now. No request waits inside a share group, so none is answered on unload.

Source: Kafka class `GroupMetadataManager`, its share part; KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.epoch_group import LEAVE_EPOCH
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.share import assignor as share_assignor
from barnabas.group.share import records
from barnabas.group.share.group import ShareGroup, StatePartitions
from barnabas.group.share.heartbeat import HeartbeatOutcome, ShareGroupHeartbeat
from barnabas.group.share.member import ShareGroupMember
from barnabas.group.share.partitions import (
    PartitionIds,
    with_initialized,
    without_initializing,
)
from barnabas.group.share.timers import ShareGroupTimers
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.messages import (
    ShareGroupDescribeResponse,
)

__all__ = ["HeartbeatOutcome", "ShareGroups"]


class ShareGroups:
    """One shard's share groups."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._env = environment
        self._timers = ShareGroupTimers(environment)
        self.heartbeat = ShareGroupHeartbeat(environment, self._timers).handle
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {
            records.MEMBER_METADATA: self._replay_member,
            records.METADATA: self._replay_epoch,
            records.TARGET_ASSIGNMENT_METADATA: self._replay_target_epoch,
            records.TARGET_ASSIGNMENT_MEMBER: self._replay_target,
            records.CURRENT_MEMBER_ASSIGNMENT: self._replay_current,
            records.STATE_PARTITION_METADATA: self._replay_state_partitions,
        }

    def __repr__(self) -> str:
        return f"<ShareGroups {self._env.partition}>"

    def initialized(self, group_id: str, partitions: PartitionIds) -> CoordinatorResult[None]:
        """Record that the share coordinator has initialized the state of partitions."""
        group = self._env.find(group_id, ShareGroup)
        if group is None or not partitions:
            return CoordinatorResult(None)
        state = with_initialized(group.state_partitions, partitions, self._env.image(), self._env.now_ms())
        return CoordinatorResult(None, [records.state_partitions_record(group_id, state)])

    def uninitialized(self, group_id: str, partitions: PartitionIds) -> CoordinatorResult[None]:
        """Record that the share coordinator failed to initialize partitions: a later heartbeat tries again."""
        group = self._env.find(group_id, ShareGroup)
        if group is None or not group.state_partitions.initializing or not partitions:
            return CoordinatorResult(None)
        state = without_initializing(group.state_partitions, partitions)
        return CoordinatorResult(None, [records.state_partitions_record(group_id, state)])

    def initialized_partitions(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """By topic id, the partitions that have state; none for a missing group."""
        group = self._env.find(group_id, ShareGroup)
        if group is None:
            return {}
        return {topic_id: topic.partitions for topic_id, topic in group.state_partitions.initialized.items()}

    def describe(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        """For ShareGroupDescribe. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        group = self._env.require(group_id, ShareGroup)
        topics = self._env.image().topics.by_id
        return ShareGroupDescribeResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state_name(),
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=share_assignor.NAME,
            members=[_described(member, topics) for member in group.members.values()],
        )

    def on_loaded(self, group: Group) -> None:
        """Start the sessions of the loaded members."""
        assert isinstance(group, ShareGroup), group
        for member_id in group.members:
            self._timers.watch_session(group.group_id, member_id)

    def on_unloaded(self, group: Group) -> None:
        """Do nothing: no request waits inside a share group."""

    def _persisted(self, group_id: str) -> ShareGroup:
        group = self._env.groups.get(group_id)
        if group is None:
            group = self._env.groups[group_id] = ShareGroup(group_id, self._env.subscribers)
        assert isinstance(group, ShareGroup), f"{group!r} has a record of a share group"
        return group

    def _replay_member(self, record: CoordinatorRecord) -> None:
        group_id, member_id = record.key.group_id, record.key.member_id
        if record.value is not None:
            group = self._persisted(group_id)
            known = group.members.get(member_id) or ShareGroupMember(member_id=member_id)
            group.update_member(known.with_metadata(record.value))
            return
        found = self._env.find(group_id, ShareGroup)
        if found is not None and member_id in found.members:
            assert found.members[member_id].member_epoch == LEAVE_EPOCH, f"{found!r}: {member_id} has not left"
            assert member_id not in found.target_assignment, f"{found!r}: {member_id} is still to be assigned"
            self._timers.cancel_session(group_id, member_id)
            found.remove_member(member_id)
            self._note_end(found)

    def _replay_epoch(self, record: CoordinatorRecord) -> None:
        group_id = record.key.group_id
        if record.value is not None:
            self._persisted(group_id).set_group_epoch(record.value.epoch, record.value.metadata_hash)
            self._env.history.begun(group_id, record.value.epoch)
            return
        group = self._env.find(group_id, ShareGroup)
        if group is not None:
            assert group.is_empty, f"{group!r} is deleted with members"
            group.unsubscribe_all()
            del self._env.groups[group_id]
            self._env.history.forget(group_id)

    def _replay_target_epoch(self, record: CoordinatorRecord) -> None:
        if record.value is not None:
            self._persisted(record.key.group_id).set_target_assignment_metadata(
                record.value.assignment_epoch, record.value.assignment_timestamp
            )
            return
        group = self._env.find(record.key.group_id, ShareGroup)
        if group is not None:
            assert not group.target_assignment, f"{group!r} still has a target assignment"
            group.set_target_assignment_metadata(-1, 0)

    def _replay_target(self, record: CoordinatorRecord) -> None:
        group_id, member_id = record.key.group_id, record.key.member_id
        if record.value is not None:
            assignment = {bytes(topic.topic_id): frozenset(topic.partitions) for topic in record.value.topic_partitions}
            self._persisted(group_id).update_target_assignment(member_id, assignment)
            return
        group = self._env.find(group_id, ShareGroup)
        if group is not None:
            group.remove_target_assignment(member_id)

    def _replay_current(self, record: CoordinatorRecord) -> None:
        group_id, member_id = record.key.group_id, record.key.member_id
        if record.value is not None:
            group = self._persisted(group_id)
            known = group.members.get(member_id) or ShareGroupMember(member_id=member_id)
            group.update_member(known.with_assignment(record.value))
            self._note_end(group)
            return
        found = self._env.find(group_id, ShareGroup)
        if found is not None and member_id in found.members:
            found.update_member(found.members[member_id].with_assignment(None))

    def _note_end(self, group: ShareGroup) -> None:
        """A rebalance has ended when every member has heard of the target assignment."""
        epoch = group.assignment_epoch
        if epoch >= group.group_epoch and all(member.member_epoch == epoch for member in group.members.values()):
            self._env.history.ended(group.group_id, group.member_count)

    def _replay_state_partitions(self, record: CoordinatorRecord) -> None:
        group_id = record.key.group_id
        if record.value is not None:
            group = self._persisted(group_id)
            group.state_partitions = StatePartitions.from_record(record.value, self._env.now_ms())
            return
        found = self._env.find(group_id, ShareGroup)
        if found is not None:
            found.state_partitions = StatePartitions({}, {}, {})


def _described(member: ShareGroupMember, topics: Mapping[bytes, TopicImage]) -> ShareGroupDescribeResponse.Member:
    return ShareGroupDescribeResponse.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(
            topic_partitions=[
                ShareGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(partitions)
                )
                for topic_id, partitions in member.assigned.items()
                if topic_id in topics
            ]
        ),
    )
