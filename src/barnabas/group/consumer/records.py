"""The records of `__consumer_offsets` that consumer groups use.

    type 3   MetadataKey(group)                  -> epoch, metadataHash               the group epoch
    type 4   PartitionMetadataKey(group)         -> (only tombstones: brokers before 4.1 kept the topics' metadata here)
    type 5   MemberMetadataKey(group, member)    -> a member's description
    type 6   TargetAssignmentMetadataKey(group)  -> assignmentEpoch, assignmentTimestamp
    type 7   TargetAssignmentMemberKey(g, m)     -> a member's target
    type 8   CurrentMemberAssignmentKey(g, m)    -> a member's progress
    type 16  RegularExpressionKey(group, regex)  -> the topics that an expression matches, version, timestamp

All values are of version 0. The keys are named after the types that Kafka gives them: `ConsumerGroup…`.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.consumer.member import ConsumerGroupMember
from barnabas.group.modern_group import Assignment
from barnabas.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

METADATA = 3
PARTITION_METADATA = 4
MEMBER_METADATA = 5
TARGET_ASSIGNMENT_METADATA = 6
TARGET_ASSIGNMENT_MEMBER = 7
CURRENT_MEMBER_ASSIGNMENT = 8
REGULAR_EXPRESSION = 16


class ResolvedRegularExpression(NamedTuple):
    """The topics that an expression matched.

    Attributes:
        version: the metadata offset at which it was resolved.
        timestamp_ms: when, epoch milliseconds.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group has reached an epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(METADATA, ConsumerGroupMetadataKey(group_id=group_id), value)


def epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a group."""
    return CoordinatorRecord(METADATA, ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of the record that a broker before 4.1 wrote about a group's topics."""
    return CoordinatorRecord(PARTITION_METADATA, ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """The description of a member."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(MEMBER_METADATA, key, member.metadata_value())


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """The end of a member."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(MEMBER_METADATA, key, None)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The target assignment is that of this group epoch; `timestamp_ms` 0 allows the next one immediately."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return CoordinatorRecord(
        TARGET_ASSIGNMENT_METADATA, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a target assignment."""
    return CoordinatorRecord(
        TARGET_ASSIGNMENT_METADATA, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None
    )


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    """The target of a member."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return CoordinatorRecord(TARGET_ASSIGNMENT_MEMBER, key, value)


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """A member has no target."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(TARGET_ASSIGNMENT_MEMBER, key, None)


def current_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """The progress of a member."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(CURRENT_MEMBER_ASSIGNMENT, key, member.assignment_value())


def current_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """A member is about to be removed."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(CURRENT_MEMBER_ASSIGNMENT, key, None)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegularExpression) -> CoordinatorRecord:
    """The topics that an expression matches."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return CoordinatorRecord(REGULAR_EXPRESSION, key, value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """An expression has lost its last subscriber."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return CoordinatorRecord(REGULAR_EXPRESSION, key, None)


def removal_of_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member, in the order that the replay needs."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
