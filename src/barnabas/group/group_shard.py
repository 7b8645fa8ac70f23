"""GroupCoordinatorShard: the groups and offsets of one partition of `__consumer_offsets`.

One map holds the groups of every type. The operations of a type and the replay of its records are in a part of its own, made with
the first record or request of that type:

    ClassicGroups    JoinGroup, SyncGroup, Heartbeat, LeaveGroup      record 2
    ConsumerGroups   ConsumerGroupHeartbeat, and the same four        records 3 to 8, 16
    ShareGroups      ShareGroupHeartbeat, ShareGroupDescribe          records 10 to 15
    StreamsGroups    StreamsGroupHeartbeat, StreamsGroupDescribe      records 17 to 23
    OffsetManager    commits of all types                             records 0, 1

The shard finds the part for a request or a record, and does the work that is the same for all: offsets, listing, deletion, expiry. Records
of an unknown type are skipped: they stay in the log.

Each part but the classic one is imported when it is made: together they take longer to import than the loop may be held.

Sources: Kafka classes `GroupCoordinatorShard`, `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.classic.groups import ClassicGroups
from barnabas.group.classic.join_group import Joining
from barnabas.group.classic.member import JoinReply, SyncReply
from barnabas.group.group import Group, GroupType, OffsetCommitter
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.offset_manager import GROUP_ID_NOT_FOUND_SINCE, OffsetManager, refuse_transactional
from barnabas.group.offset_records import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from barnabas.group.offset_store import OffsetAndMetadata, TopicOffsets
from barnabas.group.ordered_growth import starts_of
from barnabas.group.rebalance_history import RebalanceHistory, RebalanceRecord
from barnabas.group.sender import Sender
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from barnabas.group.consumer.groups import ConsumerGroups
    from barnabas.group.share.groups import ShareGroups
    from barnabas.group.streams.groups import StreamsGroups

logger = logging.getLogger(__name__)

EXPIRY_TIMER = "expire-group-metadata"

TYPE_OF_RECORD = {
    **dict.fromkeys((2,), GroupType.CLASSIC),
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), GroupType.CONSUMER),
    **dict.fromkeys((10, 11, 12, 13, 14, 15), GroupType.SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), GroupType.STREAMS),
}
"""Which type of group a record belongs to, by record type."""


class GroupsOfType(Protocol):
    """The part of a shard for one type of group.

    Attributes:
        replay_by_type: how each of its record types moves the state.
    """

    replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]]

    def on_loaded(self, group: Group) -> None:
        """Start the timers of a group that has been loaded."""
        ...

    def on_unloaded(self, group: Group) -> None:
        """Answer every request that waits inside a group: the shard is given up."""
        ...


def shard_factory(
    config: GroupCoordinatorConfig,
    *,
    now_ms: Callable[[], int],
    rng: random.Random,
    image: Callable[[], MetadataImage] = MetadataImage,
    group_configs: GroupConfigs | None = None,
) -> Callable[[int, CoordinatorTimer], GroupCoordinatorShard]:
    """Return a function that makes an empty shard for a partition.

    Args:
        rng: for member ids.
        image: the committed metadata as of now.
        group_configs: the settings of single groups.
    """

    def new_shard(partition: int, timer: CoordinatorTimer) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            GroupEnvironment(
                partition=partition,
                config=config,
                group_configs=group_configs or GroupConfigs(),
                timer=timer,
                now_ms=now_ms,
                rng=rng,
                image=image,
                history=RebalanceHistory(config.rebalance_history_size, now_ms),
            )
        )

    return new_shard


class GroupCoordinatorShard:
    """One partition's groups."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.environment = environment
        self.groups = environment.groups
        self._store = environment.offsets
        self._offsets = OffsetManager(environment.config, environment.now_ms, self._store)
        self.classic = ClassicGroups(environment)

    def __repr__(self) -> str:
        return f"<GroupCoordinatorShard {self.environment.partition} groups={len(self.groups)} {self._store!r}>"

    @property
    def committed_offsets(self) -> Mapping[str, TopicOffsets]:
        """Committed offsets by group and topic; read only."""
        return self._store.offsets.by_group

    @cached_property
    def consumer(self) -> ConsumerGroups:
        """The part for consumer groups."""
        from barnabas.group.consumer.groups import ConsumerGroups

        return ConsumerGroups(self.environment, self.classic)

    @cached_property
    def streams(self) -> StreamsGroups:
        """The part for streams groups."""
        from barnabas.group.streams.groups import StreamsGroups

        return StreamsGroups(self.environment)

    @cached_property
    def share(self) -> ShareGroups:
        """The part for share groups."""
        from barnabas.group.share.groups import ShareGroups

        return ShareGroups(self.environment)

    def part(self, kind: GroupType) -> GroupsOfType:
        """Return the part for a type of group; it is made on first use."""
        if kind is GroupType.CLASSIC:
            return self.classic
        if kind is GroupType.CONSUMER:
            return self.consumer
        return self.streams if kind is GroupType.STREAMS else self.share

    # The classic protocol

    def join_group(self, request: JoinGroupRequest, sender: Sender, reply: JoinReply) -> CoordinatorResult[None]:
        """JoinGroup: to a classic group, into a consumer group that has members, or to make an empty one classic."""
        joining = Joining(request, sender, reply)
        group = self.groups.get(request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            return self.classic.join_group(joining)
        if group.is_empty and group.type in (GroupType.CONSUMER, GroupType.STREAMS):
            return self._join_instead_of(group, joining)
        if group.type is GroupType.CONSUMER:
            return self.consumer.classic_members.join(joining)
        return joining.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")

    def _join_instead_of(self, group: Group, joining: Joining) -> CoordinatorResult[None]:
        """Replace an empty group of another type by a classic one; its offsets stay."""
        tombstones = group.tombstones()
        del self.groups[group.group_id]
        result = self.classic.join_group(joining)
        if not result.records:  # Only a first join without a member id makes a group.
            self.groups[group.group_id] = group
            return result
        then = result.on_append

        def on_append(error: KafkaError | None) -> None:
            if then is not None:
                then(error)
            if error is None:
                group.on_removed()
            elif group.group_id not in self.groups:
                self.groups[group.group_id] = group

        return result._replace(records=[*tombstones, *result.records], on_append=on_append)

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        if self._is_consumer_group(request.group_id) and not self.groups[request.group_id].is_empty:
            return self.consumer.classic_members.sync(request, reply)
        return self.classic.sync_group(request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_members.heartbeat(request)
        return self.classic.heartbeat(request)

    def leave_group(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        if self._is_consumer_group(request.group_id):
            return self.consumer.classic_members.leave(request)
        return self.classic.leave_group(request)

    def _is_consumer_group(self, group_id: str) -> bool:
        """Return whether the group is a consumer group, which may have members of the classic protocol."""
        group = self.groups.get(group_id)
        return group is not None and group.type is GroupType.CONSUMER

    # Offsets

    def commit_offsets(self, request: OffsetCommitRequest, version: int) -> CoordinatorResult[OffsetCommitResponse]:
        """Commit offsets; a commit without a generation to a missing group creates a simple group."""
        group = self.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None:
            if epoch >= 0:
                newer = version >= GROUP_ID_NOT_FOUND_SINCE
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if newer else ErrorCode.ILLEGAL_GENERATION)
            return self._offsets.commit(request)  # The replay of its first offset makes the group.
        committer = OffsetCommitter(request.member_id, request.group_instance_id, epoch, False, version)
        check = group.validate_offset_commit(committer)
        if isinstance(group, ClassicGroup):
            self.classic.committed_by(group, request.member_id)
        return self._offsets.commit(request, check)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        """Commit offsets inside a transaction; a missing group is created as by `commit_offsets`."""
        group = self.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None:
            if epoch >= 0:
                refuse_transactional(ErrorCode.GROUP_ID_NOT_FOUND, version)
            return self._offsets.commit_transactional(request, version)
        committer = OffsetCommitter(request.member_id, request.group_instance_id, epoch, True, version)
        try:
            check = group.validate_offset_commit(committer)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                refuse_transactional(error.code, version)
            raise
        return self._offsets.commit_transactional(request, version, check)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        """Look up offsets; those of a missing group are all unknown."""
        group = self.groups.get(request.group_id)
        exists = group is not None
        if group is not None:
            try:
                group.validate_offset_fetch(request.member_id, request.member_epoch)
            except KafkaError as error:
                if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                exists = False
        return self._offsets.fetch(request, exists=exists, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
        group = self.groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.validate_offset_delete()
        return self._offsets.delete(group, request)

    # The cluster's metadata

    def on_topics_changed(
        self, names: Collection[str], *, has_new: bool, grown: Collection[str] = ()
    ) -> CoordinatorResult[None]:
        """Have the groups that consume changed topics check them at their next heartbeat.

        Args:
            has_new: whether one of the topics was created.
            grown: those that have more partitions now.
        """
        environment = self.environment
        if has_new:
            environment.last_new_topics_version = environment.image().provenance.offset
        hashes, subscribers = environment.topic_hashes, environment.subscribers
        # Ten thousand names may be for each of fifty shards, in one turn of the loop.
        for name in names if hashes or subscribers else ():
            if name in hashes:
                del hashes[name]
            if name in subscribers:
                self._refresh(subscribers.of(name))
        return CoordinatorResult(None, starts_of(environment, grown) if grown else (), atomic=False)

    def _refresh(self, group_ids: Iterable[str]) -> None:
        for group_id in group_ids:
            group = self.groups.get(group_id)
            if group is not None:
                group.request_metadata_refresh()

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> CoordinatorResult[None]:
        """Delete the offsets of deleted topics (name to id), and what groups keep about these topics."""
        records = self._offsets.on_topics_deleted(topics)
        for group in self.groups.values():
            records += group.on_topics_deleted(topics.values())
        return CoordinatorResult(None, records, atomic=False)

    # Administration

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListGroupsResponse.ListedGroup]:
        """List groups; filters are in lower case, an empty filter matches all."""
        return [
            group.listed()
            for group in self.groups.values()
            if (not types or group.type.value in types) and (not states or group.state_name().lower() in states)
        ]

    def delete_group(self, group_id: str) -> CoordinatorResult[ErrorCode]:
        """Delete an empty group with its offsets."""
        group = self.groups.get(group_id)
        if group is None:
            return CoordinatorResult(ErrorCode.GROUP_ID_NOT_FOUND)
        try:
            group.validate_delete_group()
        except KafkaError as error:
            return CoordinatorResult(error.code)
        return CoordinatorResult(ErrorCode.NONE, [*self._offsets.delete_all(group_id), *group.tombstones()])

    def rebalances(self, group_id: str) -> list[RebalanceRecord]:
        """The last rebalances of a group that this coordinator has seen, oldest first.

        Raises: KafkaError GROUP_ID_NOT_FOUND.
        """
        if group_id not in self.groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self.environment.history.of(group_id)

    # The log

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record; skip records of an unknown type."""
        kind = TYPE_OF_RECORD.get(record.type_id)
        if kind is not None:
            self.part(kind).replay_by_type[record.type_id](record)
        elif record.type_id in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
            self._replay_offset(record, offset, producer_id)

    def _replay_offset(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if value is None:
            self._store.replay_tombstone(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, now_ms=self.environment.now_ms())
        legacy = record.type_id == LEGACY_OFFSET_COMMIT
        read = OffsetAndMetadata.from_legacy_record if legacy else OffsetAndMetadata.from_record
        committed = read(offset, value)
        self._store.replay(key.group, key.topic, key.partition, committed, producer_id)

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        self._store.replay_end_transaction_marker(producer_id, committed)

    def on_loaded(self) -> None:
        """Start the timers of the groups and of the expiry of offsets."""
        self.environment.is_loaded = True
        for group in list(self.groups.values()):
            self.part(group.type).on_loaded(group)
        self._schedule_expiry()

    def on_unloaded(self) -> None:
        """Answer every request that waits inside a group with NOT_COORDINATOR."""
        for group in self.groups.values():
            self.part(group.type).on_unloaded(group)

    # Expiry

    def _schedule_expiry(self) -> None:
        period_ms = self.environment.config.offsets_retention_check_interval_ms
        self.environment.timer.schedule(EXPIRY_TIMER, period_ms, self._expire)

    def _expire(self) -> CoordinatorResult[None]:
        """Tombstones for expired offsets and groups; in as many batches as necessary."""
        self._schedule_expiry()
        self.environment.history.keep_only(self.groups.keys())
        records = [record for group in self.groups.values() for record in self._offsets.expire(group)]
        if records:
            logger.info("partition %d: %d expired offsets and groups", self.environment.partition, len(records))
        return CoordinatorResult(None, records, atomic=False)
