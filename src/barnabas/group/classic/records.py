"""The record of `__consumer_offsets` that a group of the classic protocol is.

    type 2  GroupMetadataKey(group) -> GroupMetadataValue(protocolType, generation, protocol, leader, members)

The value's version written is that of Kafka 4.4: 3.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.classic.tombstone import GROUP_METADATA
from barnabas.protocol.messages import GroupMetadataKey, GroupMetadataValue

__all__ = ["GROUP_METADATA", "empty_group_metadata_record", "group_metadata_record"]

_GROUP_METADATA_VERSION = 3


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
    """A group that exists and has had no generation."""
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
