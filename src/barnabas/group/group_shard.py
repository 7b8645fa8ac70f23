"""GroupCoordinatorShard: the groups and offsets of one partition of `__consumer_offsets` (control plane).

One map holds the groups of every type. What a type can do and how its records are replayed is in a part of its own, made when
the first record or request of that type comes:

    ClassicGroups    JoinGroup, SyncGroup, Heartbeat, LeaveGroup      record 2
    ConsumerGroups   ConsumerGroupHeartbeat, and the same four        records 3 to 8, 16
    ShareGroups      ShareGroupHeartbeat, ShareGroupDescribe          records 10 to 15
    StreamsGroups    StreamsGroupHeartbeat, StreamsGroupDescribe      records 17 to 23
    OffsetManager    commits of all types                             records 0, 1

The shard finds the part for a request or a record, and does what is the same for all: offsets, listing, deletion, expiry. Records of a
type that has no part here are passed over: they stay in the log, and are not served.

Sources: Kafka classes `GroupCoordinatorShard`, `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.groups import ClassicGroups
from barnabas.group.classic.join_group import Joining
from barnabas.group.classic.member import SyncReply
from barnabas.group.group import Group, GroupType
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.offset_manager import GROUP_ID_NOT_FOUND_SINCE, OffsetManager, refuse_transactional
from barnabas.group.offset_records import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT
from barnabas.group.offset_store import OffsetAndMetadata, OffsetStore, TopicOffsets
from barnabas.group.rebalance_history import RebalanceRecord
from barnabas.metadata.topics_image import TopicsDelta
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
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
    from barnabas.group.consumer.group import ConsumerGroup
    from barnabas.group.consumer.groups import ConsumerGroups
    from barnabas.group.consumer.heartbeat import Beating

logger = logging.getLogger(__name__)

EXPIRY_TIMER = "expire-group-metadata"
DESCRIBE_NOT_FOUND_SINCE = 6

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
        """A group of this type has been loaded: start its timers."""
        ...

    def on_unloaded(self, group: Group) -> None:
        """The shard is given up: answer everyone who waits inside the group."""
        ...


class GroupCoordinatorShard:
    """One partition's groups."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.environment = environment
        self.groups = environment.groups
        self._store = OffsetStore()
        self._offsets = OffsetManager(environment.config, environment.now_ms, self._store)
        self.classic = ClassicGroups(environment)
        self._parts: dict[GroupType, GroupsOfType] = {GroupType.CLASSIC: self.classic}

    def __repr__(self) -> str:
        return f"GroupCoordinatorShard({self.environment.partition} groups={len(self.groups)} {self._store!r})"

    @property
    def committed_offsets(self) -> Mapping[str, TopicOffsets]:
        """By group and topic; to look at, not to change."""
        return self._store.offsets.by_group

    def part(self, kind: GroupType) -> GroupsOfType | None:
        """The part for a type of group, made when it is first needed; None when the type is not served."""
        if kind not in self._parts:
            made = _make_part(kind, self.environment, self.classic)
            if made is None:
                return None
            self._parts[kind] = made
        return self._parts[kind]

    @property
    def consumer(self) -> ConsumerGroups:
        """The part for consumer groups."""
        from barnabas.group.consumer.groups import ConsumerGroups

        part = self.part(GroupType.CONSUMER)
        assert isinstance(part, ConsumerGroups), part
        return part

    # -- the classic protocol ----------------------------------------------------------------------------------------

    def join_group(self, joining: Joining) -> CoordinatorResult[None]:
        """JoinGroup: to a classic group, into a consumer group that has members, or to make an empty one classic."""
        group = self.groups.get(joining.request.group_id)
        if group is None or isinstance(group, ClassicGroup):
            return self.classic.join_group(joining)
        if group.is_empty and group.type in (GroupType.CONSUMER, GroupType.STREAMS):
            return self._join_instead_of(group, joining)
        consumers = self._consumer_group(group.group_id)
        if consumers is not None:
            return self.consumer.classic_members.join(consumers, joining)
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
            if error is None or error.code is ErrorCode.REQUEST_TIMED_OUT:
                group.on_removed()
            elif group.group_id not in self.groups:
                self.groups[group.group_id] = group

        return result._replace(records=[*tombstones, *result.records], on_append=on_append)

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        group = self._consumer_group(request.group_id)
        if group is None or group.is_empty:
            return self.classic.sync_group(request, reply)
        return self.consumer.classic_members.sync(group, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        group = self._consumer_group(request.group_id)
        if group is None:
            return self.classic.heartbeat(request)
        return self.consumer.classic_members.heartbeat(group, request)

    def leave_group(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        group = self._consumer_group(request.group_id)
        if group is None:
            return self.classic.leave_group(request)
        return self.consumer.classic_members.leave(group, request)

    def _consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group, if it is a consumer group: it may have members of the classic protocol."""
        group = self.groups.get(group_id)
        if group is None or group.type is not GroupType.CONSUMER:
            return None
        from barnabas.group.consumer.group import ConsumerGroup

        assert isinstance(group, ConsumerGroup), group
        return group

    # -- consumer groups ---------------------------------------------------------------------------------------------

    def consumer_group_heartbeat(self, beating: Beating) -> CoordinatorResult[ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat of a valid request."""
        return self.consumer.heartbeat(beating)

    def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        """ConsumerGroupDescribe of one group. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        from barnabas.group.consumer.group import ConsumerGroup

        return self.consumer.describe(self.environment.require(group_id, ConsumerGroup))

    # -- offsets -----------------------------------------------------------------------------------------------------

    def commit_offsets(self, request: OffsetCommitRequest, version: int) -> CoordinatorResult[OffsetCommitResponse]:
        """Commit offsets; a commit without a generation to a group that is not there creates a simple group."""
        group = self.groups.get(request.group_id)
        generation_id = request.generation_id_or_member_epoch
        if group is None:
            if generation_id >= 0:
                newer = version >= GROUP_ID_NOT_FOUND_SINCE
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if newer else ErrorCode.ILLEGAL_GENERATION)
            return self._offsets.commit(request)  # The group comes with the replay of its first offset.
        check = group.validate_offset_commit(
            request.member_id, request.group_instance_id, generation_id, is_transactional=False, version=version
        )
        if isinstance(group, ClassicGroup):
            self.classic.committed_by(group, request.member_id)
        return self._offsets.commit(request, check)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        """Commit offsets inside a transaction; a group that is not there is created as by `commit_offsets`."""
        group = self.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if group is None:
            if epoch >= 0:
                refuse_transactional(ErrorCode.GROUP_ID_NOT_FOUND, version)
            return self._offsets.commit_transactional(request, version)
        try:
            check = group.validate_offset_commit(
                request.member_id, request.group_instance_id, epoch, is_transactional=True, version=version
            )
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                refuse_transactional(error.code, version)
            raise
        return self._offsets.commit_transactional(request, version, check)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        """Look up offsets; those of a group that is not there are all unknown."""
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

    # -- the cluster's metadata --------------------------------------------------------------------------------------

    def on_topics_changed(self, delta: TopicsDelta) -> CoordinatorResult[None]:
        """Topics were created, changed or deleted: the groups that consume them look again at their next heartbeat."""
        environment = self.environment
        if delta.created():
            environment.last_new_topics_version = environment.image().provenance.offset
        changed = [topic.name for topic in delta.changed.values()]
        for name in (*changed, *(topic.name for topic in delta.deleted.values())):
            environment.topic_hashes.pop(name, None)
            for group_id in environment.subscribers.of(name):
                group = self.groups.get(group_id)
                if group is not None:
                    group.request_metadata_refresh()
        return CoordinatorResult(None)

    def on_topics_deleted(self, topics: dict[str, bytes]) -> CoordinatorResult[None]:
        records = self._offsets.on_topics_deleted(topics)
        part = self._parts.get(GroupType.SHARE)
        if part is not None:
            from barnabas.group.share.groups import ShareGroups

            assert isinstance(part, ShareGroups), part
            records = [*records, *part.on_topics_deleted(topics.values())]
        return CoordinatorResult(None, records, atomic=False)

    # -- administration ----------------------------------------------------------------------------------------------

    def describe_groups(self, group_ids: Sequence[str], version: int) -> list[DescribeGroupsResponse.DescribedGroup]:
        return [self._describe(group_id, version) for group_id in group_ids]

    def _describe(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return self.classic.describe(group)
        missing = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
        if version >= DESCRIBE_NOT_FOUND_SINCE:
            missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing.error_message = (
                f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
            )
        return missing

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListGroupsResponse.ListedGroup]:
        """List groups; filters are in lower case, an empty one lets all through."""
        return [
            group.listed()
            for group in self.groups.values()
            if (not types or group.type.value in types) and (not states or group.state_name().lower() in states)
        ]

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> CoordinatorResult[list[DeleteGroupsResponse.DeletableGroupResult]]:
        """Delete empty groups with their offsets."""
        records: list[CoordinatorRecord] = []
        results = []
        for group_id in group_ids:
            group = self.groups.get(group_id)
            error = ErrorCode.GROUP_ID_NOT_FOUND
            if group is not None:
                try:
                    group.validate_delete_group()
                    records += [*self._offsets.delete_all(group_id), *group.tombstones()]
                    error = ErrorCode.NONE
                except KafkaError as refused:
                    error = refused.code
            results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error))
        return CoordinatorResult(results, records)

    def rebalances(self, group_id: str) -> list[RebalanceRecord]:
        """The last rebalances of a group that this coordinator has seen, oldest first.

        Raises: KafkaError GROUP_ID_NOT_FOUND.
        """
        if group_id not in self.groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self.environment.history.of(group_id)

    # -- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record; types that no part serves are passed over."""
        if record.type_id in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
            self._replay_offset(record, offset, producer_id)
            return
        kind = TYPE_OF_RECORD.get(record.type_id)
        part = None if kind is None else self.part(kind)
        if part is not None:
            part.replay_by_type[record.type_id](record)

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
        """Start the groups' timers, and begin to look for expired offsets."""
        self.environment.is_loaded = True
        for group in list(self.groups.values()):
            part = self.part(group.type)
            assert part is not None, group
            part.on_loaded(group)
        self._schedule_expiry()

    def on_unloaded(self) -> None:
        """Answer everyone who waits: the coordinator is elsewhere now."""
        for group in self.groups.values():
            part = self.part(group.type)
            assert part is not None, group
            part.on_unloaded(group)

    # -- expiry ------------------------------------------------------------------------------------------------------

    def _schedule_expiry(self) -> None:
        period_ms = self.environment.config.offsets_retention_check_interval_ms
        self.environment.timer.schedule(EXPIRY_TIMER, period_ms, self._expire)

    def _expire(self) -> CoordinatorResult[None]:
        """Tombstones for what has expired; in as many batches as it takes."""
        self._schedule_expiry()
        self.environment.history.keep_only(self.groups.keys())
        records = [record for group in self.groups.values() for record in self._offsets.expire(group)]
        if records:
            logger.info("partition %d: %d expired offsets and groups", self.environment.partition, len(records))
        return CoordinatorResult(None, records, atomic=False)


def _make_part(kind: GroupType, environment: GroupEnvironment, classic: ClassicGroups) -> GroupsOfType | None:
    """Import and make the part for a type; a broker without such groups runs without their code."""
    if kind is GroupType.CONSUMER:
        from barnabas.group.consumer.groups import ConsumerGroups

        return ConsumerGroups(environment, classic)
    if kind is GroupType.STREAMS:
        from barnabas.group.streams.groups import StreamsGroups

        return StreamsGroups(environment)
    if kind is GroupType.SHARE:
        from barnabas.group.share.groups import ShareGroups

        return ShareGroups(environment)
    return None
