"""ShareGroups: the share groups of one shard: heartbeats, assignment, and the state of their partitions (control plane).

A heartbeat may change the member's subscription, which moves the group's epoch, which asks for a new target assignment; the member then
goes where that wants it, at once. The same heartbeat finds partitions whose state has not been begun: they are noted as
initializing, and the caller begins them with the share coordinator and comes back with `initialized`. The next heartbeat
assigns them.

- A member that sends no heartbeat for its session timeout is removed.
- A member with an epoch that is neither its own nor the one before is fenced: FENCED_MEMBER_EPOCH.
- Offsets of partitions can be set and deleted while the group is empty; both go through the share coordinator too.

Source: Kafka class `GroupMetadataManager`, its share part; KIP-932.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.modern_group import Assignment
from barnabas.group.share import assignor as share_assignor
from barnabas.group.share import records
from barnabas.group.share.group import LEAVE_EPOCH, ShareGroup, ShareGroupMember, StatePartitions
from barnabas.group.share.partitions import (
    PartitionIds,
    with_initialized,
    without_initializing,
)
from barnabas.group.share.step import HeartbeatStep, Initialization
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)

RETRY_MS = 500
"""How long a timer waits after the log has refused its records."""


class HeartbeatOutcome(NamedTuple):
    """A heartbeat's answer, and what to begin with the share coordinator."""

    response: ShareGroupHeartbeatResponse
    initialization: Initialization | None = None


class ShareGroups:
    """One shard's share groups."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._env = environment
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {
            records.MEMBER_METADATA: self._replay_member,
            records.METADATA: self._replay_epoch,
            records.TARGET_ASSIGNMENT_METADATA: self._replay_target_epoch,
            records.TARGET_ASSIGNMENT_MEMBER: self._replay_target,
            records.CURRENT_MEMBER_ASSIGNMENT: self._replay_current,
            records.STATE_PARTITION_METADATA: self._replay_state_partitions,
        }

    def __repr__(self) -> str:
        return f"ShareGroups({self._env.partition})"

    # -- heartbeats --------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> CoordinatorResult[HeartbeatOutcome]:
        """Take a member in, move it on, or let it go.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
        """
        if request.member_epoch == LEAVE_EPOCH:
            return self._leave(request)
        group = self._group_for(request)
        member = self._member_for(group, request)
        updated = replace(
            member,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            client_id=client_id,
            client_host=client_host,
            subscribed_topic_names=member.subscribed_topic_names
            if request.subscribed_topic_names is None
            else frozenset(request.subscribed_topic_names),
        )
        step = HeartbeatStep(self._env, group, member, updated)
        step.run()
        self._watch_session(group.group_id, updated.member_id)
        updated = step.member
        response = ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=self._env.group_configs.int_value(group.group_id, "share.heartbeat.interval.ms"),
        )
        is_full = request.subscribed_topic_names is not None
        if request.member_epoch == 0 or is_full or updated.assigned != member.assigned:
            response.assignment = _assignment_message(updated.assigned)
        return CoordinatorResult(HeartbeatOutcome(response, step.initialization), step.records)

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group_id = request.group_id
        if request.member_epoch == 0 and group_id not in self._env.groups:
            group = ShareGroup(group_id, self._env.subscribers)
        else:
            group = self._require(group_id)
        most = self._env.config.group_share_max_size
        if group.member_count >= most and not group.has_member(request.member_id):
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {most} members.",
            )
        return group

    def _require(self, group_id: str) -> ShareGroup:
        if group_id not in self._env.groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return self._env.require(group_id, ShareGroup)

    def _member_for(self, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareGroupMember:
        epoch = request.member_epoch
        if epoch == 0:
            return group.members.get(request.member_id) or ShareGroupMember(member_id=request.member_id)
        member = group.member(request.member_id)
        if epoch > member.member_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin.",
            )
        if epoch < member.member_epoch and epoch != member.previous_member_epoch:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
                f"coordinator ({member.member_epoch}), and it does not match the previous member epoch "
                f"({member.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
            )
        return member

    # -- the end of a member -----------------------------------------------------------------------------------------

    def _leave(self, request: ShareGroupHeartbeatRequest) -> CoordinatorResult[HeartbeatOutcome]:
        group = self._env.require(request.group_id, ShareGroup)
        member = group.member(request.member_id)
        response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE_EPOCH)
        return CoordinatorResult(HeartbeatOutcome(response), self._removal(group, member, "it left"))

    def _removal(self, group: ShareGroup, member: ShareGroupMember, reason: str) -> list[CoordinatorRecord]:
        env, group_id = self._env, group.group_id
        metadata_hash = group.compute_metadata_hash(group.counts_with(member, None), env.topic_hashes, env.image())
        epoch = group.group_epoch + 1
        env.history.because(
            group_id, epoch, f"member {member.member_id} was removed: {reason}", member.member_id, member.client_id
        )
        removal = [
            *records.removal_of_member(group_id, member.member_id),
            records.epoch_record(group_id, epoch, metadata_hash),
        ]
        if group.member_count == 1:
            # An empty group is assigned: nothing waits for the assignment interval when the next member comes.
            removal.append(records.target_epoch_record(group_id, epoch, 0))
        return removal

    def _watch_session(self, group_id: str, member_id: str, delay_ms: int | None = None) -> None:
        """A heartbeat has come: the member's session begins anew."""
        if delay_ms is None:
            delay_ms = self._env.group_configs.int_value(group_id, "share.session.timeout.ms")
        self._env.timer.schedule(_session_key(group_id, member_id), delay_ms, lambda: self._expire(group_id, member_id))

    def _expire(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        group = self._env.find(group_id, ShareGroup)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return CoordinatorResult(None)
        logger.info("share group %s: member %s is removed because its session expired", group_id, member_id)

        def on_append(error: KafkaError | None) -> None:
            if error is not None and error.code is not ErrorCode.NOT_COORDINATOR:  # Else the timers have ended.
                logger.warning("share group %s: could not remove member %s: %s", group_id, member_id, error)
                self._watch_session(group_id, member_id, RETRY_MS)

        return CoordinatorResult(None, self._removal(group, member, "its session expired"), on_append=on_append)

    # -- the state of partitions -------------------------------------------------------------------------------------

    def initialized(self, group_id: str, partitions: PartitionIds) -> CoordinatorResult[None]:
        """The share coordinator has begun the state of partitions."""
        group = self._env.find(group_id, ShareGroup)
        if group is None or not partitions:
            return CoordinatorResult(None)
        state = with_initialized(group.state_partitions, partitions, self._env.image(), self._env.now_ms())
        return CoordinatorResult(None, [records.state_partitions_record(group_id, state)])

    def uninitialized(self, group_id: str, partitions: PartitionIds) -> CoordinatorResult[None]:
        """The share coordinator could not begin the state of partitions: a later heartbeat tries again."""
        group = self._env.find(group_id, ShareGroup)
        if group is None or not group.state_partitions.initializing or not partitions:
            return CoordinatorResult(None)
        state = without_initializing(group.state_partitions, partitions)
        return CoordinatorResult(None, [records.state_partitions_record(group_id, state)])

    def initialized_partitions(self, group_id: str) -> dict[bytes, frozenset[int]]:
        """By topic id, the partitions that have state; none for a group that is not there."""
        group = self._env.find(group_id, ShareGroup)
        if group is None:
            return {}
        return {topic_id: topic.partitions for topic_id, topic in group.state_partitions.initialized.items()}

    def on_topics_deleted(self, topic_ids: Iterable[bytes]) -> list[CoordinatorRecord]:
        """Forget the partitions of topics that are gone; the share coordinator does so by itself."""
        gone = frozenset(topic_ids)
        found = []
        for group in self._env.groups.values():
            if not isinstance(group, ShareGroup):
                continue
            state = group.state_partitions
            if gone & {*state.initializing, *state.initialized, *state.deleting}:
                kept = StatePartitions(
                    {topic_id: topic for topic_id, topic in state.initializing.items() if topic_id not in gone},
                    {topic_id: topic for topic_id, topic in state.initialized.items() if topic_id not in gone},
                    {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in gone},
                )
                found.append(records.state_partitions_record(group.group_id, kept))
        return found

    # -- administration ----------------------------------------------------------------------------------------------

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

    # -- replay ------------------------------------------------------------------------------------------------------

    def on_loaded(self, group: Group) -> None:
        """Every member has a session from now."""
        assert isinstance(group, ShareGroup), group
        for member_id in group.members:
            self._watch_session(group.group_id, member_id)

    def on_unloaded(self, group: Group) -> None:
        """Nobody waits inside."""

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
            self._env.timer.cancel(_session_key(group_id, member_id))
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


def _assignment_message(assigned: Assignment) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


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


def _session_key(group_id: str, member_id: str) -> str:
    return f"share-session-{group_id}-{member_id}"
