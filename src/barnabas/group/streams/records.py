"""The records of `__consumer_offsets` that streams groups use.

    type 17  StreamsGroupMetadataKey(group)                      -> group epoch, metadata hash, validated topology, assignment settings
    type 19  StreamsGroupMemberMetadataKey(group, member)        -> a member's description
    type 20  StreamsGroupTargetAssignmentMetadataKey(group)      -> epoch and time of the target assignment
    type 21  StreamsGroupTargetAssignmentMemberKey(group, member)  -> the tasks a member should have
    type 22  StreamsGroupCurrentMemberAssignmentKey(group, member) -> the tasks it has, its epoch and state
    type 23  StreamsGroupTopologyKey(group)                      -> the topology

Every value is of version 0. Lists are sorted by subtopology, partition or key, as Kafka's are.

Source: Kafka class `StreamsCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.streams.member import StreamsGroupMember
from barnabas.group.streams.tasks import Tasks, TasksTuple, TasksWithEpochs
from barnabas.protocol import messages
from barnabas.protocol.messages import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyValue,
)

STREAMS_GROUP_METADATA = 17
STREAMS_GROUP_MEMBER_METADATA = 19
STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
STREAMS_GROUP_TOPOLOGY = 23


def group_metadata_record(
    group_id: str,
    epoch: int,
    *,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> CoordinatorRecord:
    """A group epoch, and what it was computed from."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=assignment_configs[key])
            for key in sorted(assignment_configs)
        ],
    )
    return CoordinatorRecord(STREAMS_GROUP_METADATA, messages.StreamsGroupMetadataKey(group_id=group_id), value)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_METADATA, messages.StreamsGroupMetadataKey(group_id=group_id), None)


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_TOPOLOGY, messages.StreamsGroupTopologyKey(group_id=group_id), value)


def topology_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_TOPOLOGY, messages.StreamsGroupTopologyKey(group_id=group_id), None)


def target_assignment_metadata_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The end of a target assignment's computation; a time of 0 allows the next one immediately."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return CoordinatorRecord(STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, _target_metadata_key(group_id), value)


def target_assignment_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, _target_metadata_key(group_id), None)


def _target_metadata_key(group_id: str) -> messages.StreamsGroupTargetAssignmentMetadataKey:
    return messages.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)


def member_metadata_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    Value = StreamsGroupMemberMetadataValue
    endpoint = member.user_endpoint
    value = Value(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Value.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[Value.KeyValue(key=key, value=member.client_tags[key]) for key in sorted(member.client_tags)],
    )
    return CoordinatorRecord(STREAMS_GROUP_MEMBER_METADATA, _member_key(group_id, member.member_id), value)


def member_metadata_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_MEMBER_METADATA, _member_key(group_id, member_id), None)


def _member_key(group_id: str, member_id: str) -> messages.StreamsGroupMemberMetadataKey:
    return messages.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def target_assignment_record(group_id: str, member_id: str, tasks: TasksTuple) -> CoordinatorRecord:
    def ids(entries: Tasks) -> list[StreamsGroupTargetAssignmentMemberValue.TaskIds]:
        return [
            StreamsGroupTargetAssignmentMemberValue.TaskIds(subtopology_id=name, partitions=sorted(entries[name]))
            for name in sorted(entries)
        ]

    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=ids(tasks.active), standby_tasks=ids(tasks.standby), warmup_tasks=ids(tasks.warmup)
    )
    return CoordinatorRecord(STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, _target_member_key(group_id, member_id), value)


def target_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, _target_member_key(group_id, member_id), None)


def _target_member_key(group_id: str, member_id: str) -> messages.StreamsGroupTargetAssignmentMemberKey:
    return messages.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def current_assignment_record(group_id: str, member: StreamsGroupMember) -> CoordinatorRecord:
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=_ids(assigned.standby),
        warmup_tasks=_ids(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(pending.active),
        standby_tasks_pending_revocation=_ids(pending.standby),
        warmup_tasks_pending_revocation=_ids(pending.warmup),
    )
    return CoordinatorRecord(STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, _current_key(group_id, member.member_id), value)


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, _current_key(group_id, member_id), None)


def _current_key(group_id: str, member_id: str) -> messages.StreamsGroupCurrentMemberAssignmentKey:
    return messages.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _ids(tasks: Tasks) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValue.TaskIds(subtopology_id=name, partitions=sorted(tasks[name]))
        for name in sorted(tasks)
    ]


def _with_epochs(tasks: TasksWithEpochs) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=name,
            partitions=sorted(tasks[name]),
            assignment_epochs=[tasks[name][index] for index in sorted(tasks[name])],
        )
        for name in sorted(tasks)
    ]


def removed_member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The end of a member, in the order that replay asks for."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_assignment_tombstone(group_id, member_id),
        member_metadata_tombstone(group_id, member_id),
    ]
