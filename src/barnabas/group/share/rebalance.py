"""The steps of a rebalance in a share group, taken by a member's heartbeat.

    subscription changed, or partitions are ready       ──► bump the group epoch
    group epoch > assignment epoch                      ──► compute a target assignment, at most once an interval
    the member has not its target                       ──► assign it in this heartbeat: members may share
    partitions of subscribed topics without state       ──► note them as initializing, for the caller to initialize

Source: Kafka class `GroupMetadataManager` (`shareGroupHeartbeat`, `maybeUpdateTargetAssignment`, `maybeReconcile`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment, SubscriptionCounts
from barnabas.group.share import assignor as share_assignor
from barnabas.group.share import records
from barnabas.group.share.group import ShareGroup
from barnabas.group.share.member import ShareGroupMember
from barnabas.group.share.partitions import PartitionIds, with_initializing
from barnabas.metadata.topics_image import TopicImage

METADATA_REFRESH_INTERVAL_MS = 2**31 - 1


class Initialization(NamedTuple):
    """Partitions whose state must be initialized, and the state epoch for it."""

    state_epoch: int
    partitions: PartitionIds


class ShareGroupRebalance:
    """The steps of one heartbeat.

    Attributes:
        records: of all steps.
        member: after them.
    """

    def __init__(
        self, env: GroupEnvironment, group: ShareGroup, before: ShareGroupMember, member: ShareGroupMember
    ) -> None:
        self._env = env
        self._group = group
        self._before = before
        self.member = member
        self.records: list[CoordinatorRecord] = []
        self.initialization: Initialization | None = None

    def run(self) -> None:
        group, group_id = self._group, self._group.group_id
        moves = False
        cause = ""
        if self.member != self._before:
            self.records.append(records.member_record(group_id, self.member))
            if self.member.subscribed_topic_names != self._before.subscribed_topic_names:
                moves = True
                joined = self.member.member_id not in group.members
                cause = f"member {self.member.member_id} {'joined' if joined else 'changed its subscription'}"
        if group.assignment_epoch >= group.group_epoch and group.has_unassigned_partitions():
            moves, cause = True, cause or "partitions are ready to be shared"
        counts: SubscriptionCounts = group.subscribed_topic_names
        epoch, homogeneous = group.group_epoch, group.homogeneous
        if moves or group.has_metadata_expired(self._env.now_ms()):
            counts = group.counts_with(self._before if self._is_known else None, self.member)
            size = group.member_count + (not self._is_known)
            homogeneous = all(count.by_name == size for count in counts.values())
            metadata_hash = group.compute_metadata_hash(counts, self._env.topic_hashes, self._env.image())
            if metadata_hash != group.metadata_hash:
                moves, cause = True, cause or "the topics have changed"
            if moves:
                epoch += 1
                self.records.append(records.epoch_record(group_id, epoch, metadata_hash))
                self._env.history.because(group_id, epoch, cause, self.member.member_id, self.member.client_id)
            group.set_metadata_refresh_deadline(self._env.now_ms() + METADATA_REFRESH_INTERVAL_MS, epoch)
        target_epoch, target = self._target(epoch, homogeneous=homogeneous)
        self._reconcile(target_epoch, target, moves=moves)
        self._initialize(counts, epoch)

    @property
    def _is_known(self) -> bool:
        return self.member.member_id in self._group.members

    def _target(self, epoch: int, *, homogeneous: bool) -> tuple[int, Assignment]:
        """Return the epoch and the member's part of the target assignment, which is computed again if that is due."""
        group, now_ms = self._group, self._env.now_ms()
        member_id = self.member.member_id
        interval_ms = self._env.group_configs.int_value(group.group_id, "share.assignment.interval.ms")
        last_ms = group.assignment_timestamp_ms
        if group.assignment_epoch >= epoch or (last_ms and interval_ms and now_ms < last_ms + interval_ms):
            return group.assignment_epoch, group.target_assignment.get(member_id, NO_ASSIGNMENT)
        members = {**group.members, member_id: self.member}
        by_name = self._env.image().topics.by_name
        assignment = share_assignor.assign(
            {each: _topic_ids(member, by_name) for each, member in members.items()},
            {topic_id: topic.partitions for topic_id, topic in group.state_partitions.initialized.items()},
            group.target_assignment,
            homogeneous=homogeneous,
        )
        for each, partitions in assignment.items():
            if group.target_assignment.get(each) != partitions:
                self.records.append(records.target_record(group.group_id, each, partitions))
        self.records.append(records.target_epoch_record(group.group_id, epoch, now_ms))
        return epoch, assignment[member_id]

    def _reconcile(self, target_epoch: int, target: Assignment, *, moves: bool) -> None:
        """Assign the member its target in this heartbeat, since members may share."""
        member = self.member
        if not moves and member.member_epoch == target_epoch:
            return
        subscribed = _topic_ids(member, self._env.image().topics.by_name)
        assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
        updated = replace(member, assigned=assigned)
        if member.member_epoch != target_epoch:
            updated = replace(updated, member_epoch=target_epoch, previous_member_epoch=member.member_epoch)
        if updated != member:
            self.records.append(records.current_record(self._group.group_id, updated))
        self.member = updated

    def _initialize(self, counts: Iterable[str], epoch: int) -> None:
        """Note partitions of subscribed topics that have no state yet."""
        state, wanted = with_initializing(
            self._group.state_partitions,
            counts,
            self._env.image(),
            self._env.now_ms(),
            self._env.config.group_share_initialize_retry_interval_ms,
        )
        if wanted:
            self.records.append(records.state_partitions_record(self._group.group_id, state))
            self.initialization = Initialization(epoch, wanted)


def _topic_ids(member: ShareGroupMember, by_name: Mapping[str, TopicImage]) -> frozenset[bytes]:
    return frozenset(bytes(by_name[name].topic_id) for name in member.subscribed_topic_names if name in by_name)
