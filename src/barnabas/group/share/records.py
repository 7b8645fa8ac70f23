"""The records of `__consumer_offsets` that share groups use.

    type 10  MemberMetadataKey(group, member)    -> a member's description
    type 11  MetadataKey(group)                  -> epoch, metadataHash
    type 12  TargetAssignmentMetadataKey(group)  -> assignmentEpoch, assignmentTimestamp
    type 13  TargetAssignmentMemberKey(g, m)     -> a member's target
    type 14  CurrentMemberAssignmentKey(g, m)    -> a member's progress
    type 15  StatePartitionMetadataKey(group)    -> partitions whose state is initializing, initialized, deleting

All values are of version 0. The keys are named after the types that Kafka gives them: `ShareGroup…`.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.modern_group import Assignment
from barnabas.group.share.member import ShareGroupMember
from barnabas.group.share.partitions import StatePartitions, TopicPartitions
from barnabas.protocol.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

MEMBER_METADATA = 10
METADATA = 11
TARGET_ASSIGNMENT_METADATA = 12
TARGET_ASSIGNMENT_MEMBER = 13
CURRENT_MEMBER_ASSIGNMENT = 14
STATE_PARTITION_METADATA = 15


def member_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """The description of a member."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(MEMBER_METADATA, key, value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group has reached an epoch."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return CoordinatorRecord(METADATA, ShareGroupMetadataKey(group_id=group_id), value)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The target assignment is that of this group epoch; `timestamp_ms` 0 allows the next one immediately."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    return CoordinatorRecord(TARGET_ASSIGNMENT_METADATA, key, value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> CoordinatorRecord:
    """The target of a member."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ShareGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(TARGET_ASSIGNMENT_MEMBER, key, value)


def current_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """The progress of a member."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            ShareGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(CURRENT_MEMBER_ASSIGNMENT, key, value)


def removal_of_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that remove a member, in the order that the replay needs."""
    return [*assignment_tombstones(group_id, member_id), member_tombstone(group_id, member_id)]


def assignment_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """A member has nothing, and should have nothing."""
    current = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    target = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return [
        CoordinatorRecord(CURRENT_MEMBER_ASSIGNMENT, current, None),
        CoordinatorRecord(TARGET_ASSIGNMENT_MEMBER, target, None),
    ]


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """The end of a member."""
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return CoordinatorRecord(MEMBER_METADATA, key, None)


def group_tombstones(group_id: str) -> list[CoordinatorRecord]:
    """The end of a group without members."""
    return [
        CoordinatorRecord(TARGET_ASSIGNMENT_METADATA, ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        CoordinatorRecord(STATE_PARTITION_METADATA, ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        CoordinatorRecord(METADATA, ShareGroupMetadataKey(group_id=group_id), None),
    ]


def state_partitions_record(group_id: str, state: StatePartitions) -> CoordinatorRecord:
    """The partitions whose state is initializing, initialized, deleting."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topic_infos(state.initializing),
        initialized_topics=_topic_infos(state.initialized),
        deleting_topics=[
            ShareGroupStatePartitionMetadataValue.TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in state.deleting.items()
        ],
    )
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    return CoordinatorRecord(STATE_PARTITION_METADATA, key, value)


def _topic_infos(
    topics: Mapping[bytes, TopicPartitions],
) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]
