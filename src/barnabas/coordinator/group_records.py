"""The records of `__consumer_offsets` that the classic protocol and committed offsets use (control plane).

    type 1  OffsetCommitKey(group, topic, partition) -> OffsetCommitValue(offset, leaderEpoch, metadata, commitTimestamp, topicId)
    type 2  GroupMetadataKey(group)                  -> GroupMetadataValue(protocolType, generation, protocol, leader, members)

Versions written are those of Kafka 4.4: OffsetCommitValue 4 (1 when the request carries its own retention time, since only
that version has an expiry), GroupMetadataValue 3. Type 0 is how brokers before 0.9 wrote offsets; it is read as type 1.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.coordinator.classic_group import ClassicGroup
    from barnabas.coordinator.offset_store import OffsetAndMetadata

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2

_OFFSET_COMMIT_VERSION = 4
_OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
_GROUP_METADATA_VERSION = 3


def offset_commit_record(group_id: str, topic: str, partition: int, offset: OffsetAndMetadata) -> CoordinatorRecord:
    """A committed offset."""
    expires = offset.expire_timestamp_ms is not None
    value = OffsetCommitValue(
        offset=offset.committed_offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms if offset.expire_timestamp_ms is not None else -1,
        topic_id=offset.topic_id,
    )
    version = _OFFSET_COMMIT_VERSION_WITH_EXPIRY if expires else _OFFSET_COMMIT_VERSION
    return CoordinatorRecord(OFFSET_COMMIT, _offset_key(group_id, topic, partition), value, version)


def offset_commit_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The end of a committed offset."""
    return CoordinatorRecord(OFFSET_COMMIT, _offset_key(group_id, topic, partition), None)


def _offset_key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)


def group_metadata_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """A generation of a group, with the assignments of its members."""
    members = []
    for member in group.members.values():
        assert group.protocol_name is not None, f"{group!r} has members and no protocol"
        members.append(
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments[member.member_id],
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.current_state_timestamp_ms,
        members=members,
    )
    return _group_record(group.group_id, value)


def empty_group_metadata_record(group_id: str, current_state_timestamp_ms: int) -> CoordinatorRecord:
    """A group that is known and has had no generation."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=current_state_timestamp_ms,
        members=[],
    )
    return _group_record(group_id, value)


def _group_record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(group=group_id), value, _GROUP_METADATA_VERSION)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a group."""
    return CoordinatorRecord(GROUP_METADATA, GroupMetadataKey(group=group_id), None)
