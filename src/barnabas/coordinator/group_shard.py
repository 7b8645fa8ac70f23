"""GroupCoordinatorShard: the groups and offsets of one partition of `__consumer_offsets` (control plane).

It joins the parts (`JoinGroup`, `SyncGroup`, `GroupMembership`, `Rebalance`, `OffsetManager`) over one map of groups, and moves that
state in `replay`. Records of groups of other types (KIP-848 consumers, share, streams) are left alone: they stay in the
log, and are not served.

On load every member of a loaded group is given a session timeout from now; on unload every waiting member is told to find the
new coordinator.

Sources: Kafka classes `GroupCoordinatorShard`, `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Sequence

from barnabas.coordinator.classic_group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic_member import ClassicGroupMember, SyncReply
from barnabas.coordinator.group_config import GroupCoordinatorConfig
from barnabas.coordinator.group_membership import GroupMembership
from barnabas.coordinator.group_records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    group_metadata_tombstone,
)
from barnabas.coordinator.join_group import JoinGroup, Joining
from barnabas.coordinator.offset_manager import (
    GROUP_ID_NOT_FOUND_SINCE,
    OffsetManager,
    validate_commit,
    validate_delete,
)
from barnabas.coordinator.offset_store import OffsetAndMetadata, OffsetStore
from barnabas.coordinator.rebalance import Rebalance
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.sync_group import SyncGroup
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
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
    SyncGroupResponse,
)

logger = logging.getLogger(__name__)

EXPIRY_TIMER = "expire-group-metadata"
DESCRIBE_NOT_FOUND_SINCE = 6
CLASSIC_GROUP_TYPE = "classic"


class GroupCoordinatorShard:
    """One partition's groups."""

    def __init__(
        self,
        partition: int,
        timer: CoordinatorTimer,
        *,
        config: GroupCoordinatorConfig,
        now_ms: Callable[[], int],
        rng: random.Random,
    ) -> None:
        self._partition = partition
        self._timer = timer
        self._config = config
        self._now_ms = now_ms
        self.groups: dict[str, ClassicGroup] = {}
        self._store = OffsetStore()
        self._offsets = OffsetManager(config, now_ms, self._store)
        self._rebalance = Rebalance(config, timer, now_ms, self.groups)
        self._join = JoinGroup(config, self._rebalance, now_ms, rng, self.groups)
        self._sync = SyncGroup(self._rebalance, now_ms, self.groups)
        self._membership = GroupMembership(self._rebalance, self.groups)

    def __repr__(self) -> str:
        return f"GroupCoordinatorShard({self._partition} groups={len(self.groups)} {self._store!r})"

    # -- the classic protocol ----------------------------------------------------------------------------------------

    def join_group(self, joining: Joining) -> CoordinatorResult[None]:
        return self._join.handle(joining)

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        return self._sync.handle(request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        return self._membership.heartbeat(request)

    def leave_group(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        return self._membership.leave(request)

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
        validate_commit(group, request.member_id, request.group_instance_id, generation_id)
        member = group.members.get(request.member_id)
        if member is not None and group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
            self._rebalance.reschedule_heartbeat(group, member)
        return self._offsets.commit(request)

    def fetch_offsets(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        group = self.groups.get(request.group_id)
        exists = group is not None and not group.is_in_state(ClassicGroupState.DEAD)
        return self._offsets.fetch(request, exists=exists, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
        group = self.groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        validate_delete(group)
        return self._offsets.delete(group, request)

    def on_topics_deleted(self, topics: dict[str, bytes]) -> CoordinatorResult[None]:
        return CoordinatorResult(None, self._offsets.on_topics_deleted(topics), atomic=False)

    # -- administration ----------------------------------------------------------------------------------------------

    def describe_groups(self, group_ids: Sequence[str], version: int) -> list[DescribeGroupsResponse.DescribedGroup]:
        return [self._describe(group_id, version) for group_id in group_ids]

    def _describe(self, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
        group = self.groups.get(group_id)
        if group is None:
            missing = DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
            if version >= DESCRIBE_NOT_FOUND_SINCE:
                missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                missing.error_message = f"Group {group_id} not found."
            return missing
        stable = group.is_in_state(ClassicGroupState.STABLE)
        protocol = group.protocol_name if stable else None
        return DescribeGroupsResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in group.members.values()],
        )

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListGroupsResponse.ListedGroup]:
        """List groups; filters are in lower case, an empty one lets all through."""
        if types and CLASSIC_GROUP_TYPE not in types:
            return []
        return [group.listed() for group in self.groups.values() if not states or group.state.value.lower() in states]

    def delete_groups(
        self, group_ids: Sequence[str]
    ) -> CoordinatorResult[list[DeleteGroupsResponse.DeletableGroupResult]]:
        """Delete empty groups with their offsets."""
        records: list[CoordinatorRecord] = []
        results = []
        for group_id in group_ids:
            error = self._delete_error(group_id)
            if error is ErrorCode.NONE:
                records += [*self._offsets.delete_all(group_id), group_metadata_tombstone(group_id)]
            results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error))
        return CoordinatorResult(results, records)

    def _delete_error(self, group_id: str) -> ErrorCode:
        group = self.groups.get(group_id)
        if group is None or group.is_in_state(ClassicGroupState.DEAD):
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if group.is_empty else ErrorCode.NON_EMPTY_GROUP

    # -- the log -----------------------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record; types of other coordinators are passed over."""
        if record.type_id in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
            self._replay_offset(record, offset, producer_id)
        elif record.type_id == GROUP_METADATA:
            self._replay_group(record)

    def _replay_offset(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if value is None:
            self._store.replay_tombstone(key.group, key.topic, key.partition)
            return
        if key.group not in self.groups:
            self.groups[key.group] = ClassicGroup(key.group, now_ms=self._now_ms())
        legacy = record.type_id == LEGACY_OFFSET_COMMIT
        read = OffsetAndMetadata.from_legacy_record if legacy else OffsetAndMetadata.from_record
        committed = read(offset, value)
        self._store.replay(key.group, key.topic, key.partition, committed, producer_id)

    def _replay_group(self, record: CoordinatorRecord) -> None:
        group_id = record.key.group
        previous = self.groups.pop(group_id, None)
        if previous is not None:
            self._rebalance.cancel_all(previous)
        if record.value is not None:
            self.groups[group_id] = _loaded_group(group_id, record.value)

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        self._store.replay_end_transaction_marker(producer_id, committed)

    def on_loaded(self) -> None:
        """Watch the members that were loaded, and begin to look for expired offsets."""
        for group in list(self.groups.values()):
            for member in group.members.values():
                self._rebalance.reschedule_heartbeat(group, member)
            if len(group.members) > self._config.group_max_size:
                self._rebalance.prepare(group, f"{len(group.members)} members are more than group.max.size")
        self._schedule_expiry()

    def on_unloaded(self) -> None:
        """Answer every member that waits: the coordinator is elsewhere now."""
        for group in self.groups.values():
            group.transition_to(ClassicGroupState.DEAD, self._now_ms())
            for member in group.members.values():
                gone = ErrorCode.NOT_COORDINATOR
                group.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=gone))
                group.complete_sync(member, SyncGroupResponse(error_code=gone))

    # -- expiry ------------------------------------------------------------------------------------------------------

    def _schedule_expiry(self) -> None:
        self._timer.schedule(EXPIRY_TIMER, self._config.offsets_retention_check_interval_ms, self._expire)

    def _expire(self) -> CoordinatorResult[None]:
        """Tombstones for what has expired; in as many batches as it takes."""
        self._schedule_expiry()
        records = [record for group in self.groups.values() for record in self._offsets.expire(group)]
        if records:
            logger.info("partition %d: %d expired offsets and groups", self._partition, len(records))
        return CoordinatorResult(None, records, atomic=False)


def _loaded_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record shows: stable with members, else empty."""
    group = ClassicGroup(
        group_id,
        now_ms=value.current_state_timestamp,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        group.add(
            ClassicGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 has no rebalance timeout; the session timeout stands for both.
                rebalance_timeout_ms=member.session_timeout
                if member.rebalance_timeout == -1
                else member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols={value.protocol or "": member.subscription},
                assignment=member.assignment,
            )
        )
    group.subscribed_topics = group.compute_subscribed_topics()
    return group
