"""Altering and deleting the offsets of a share group, in the group's shard.

The share coordinator keeps the offsets; the group keeps which partitions have some. So each change has two halves: the group first
records the partitions and returns what the share coordinator must do, and afterwards records the outcome.

Both need an empty group. Altering creates a missing group.

Source: Kafka class `GroupMetadataManager` (`alterShareGroupOffsets`, `sharePartitionsEligibleForOffsetDeletion`,
`shareGroupBuildPartitionDeleteRequest`, `completeDeleteShareGroupOffsets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.share import records
from barnabas.group.share.group import ShareGroup, StatePartitions, TopicPartitions
from barnabas.group.share.partitions import PartitionIds, add_initializing
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
)

NO_OFFSETS = "There is no offset information to delete."

AlteredTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlteredPartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
DeletedTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


class Deletion(NamedTuple):
    """The topics that cannot be deleted, and the partitions to delete."""

    rejected: list[DeletedTopic]
    partitions: PartitionIds


def alter(
    env: GroupEnvironment,
    group_id: str,
    offsets: Mapping[bytes, Mapping[int, int]],
) -> CoordinatorResult[int]:
    """Record partitions as initializing; the response is the epoch of their states.

    Args:
        offsets: the new offsets, by topic id and partition; the topics exist.

    Raises:
        KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another type.
    """
    group = env.require(group_id, ShareGroup) if group_id in env.groups else ShareGroup(group_id, env.subscribers)
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    by_id = env.image().topics.by_id
    noted = {
        topic_id: TopicPartitions(by_id[topic_id].name, frozenset(partitions), env.now_ms())
        for topic_id, partitions in offsets.items()
        if topic_id in by_id
    }
    if not noted:
        return CoordinatorResult(group.group_epoch)
    state = add_initializing(group.state_partitions, noted)
    return CoordinatorResult(group.group_epoch, [records.state_partitions_record(group_id, state)])


def delete(env: GroupEnvironment, group_id: str, topics: Iterable[str]) -> CoordinatorResult[Deletion]:
    """Record topics as deleting.

    Raises:
        KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
    """
    group = env.require(group_id, ShareGroup)
    group.validate_delete_group()
    state = group.state_partitions
    rejected = []
    partitions: dict[bytes, frozenset[int]] = {}
    initialized, deleting = dict(state.initialized), dict(state.deleting)
    for name in topics:
        known = env.image().topics.by_name.get(name)
        topic_id = None if known is None else bytes(known.topic_id)
        if known is None or topic_id is None:
            rejected.append(unknown_topic(name))
        elif topic_id in initialized:
            partitions[topic_id] = initialized.pop(topic_id).partitions
            deleting[topic_id] = name
        elif topic_id in deleting:
            partitions[topic_id] = frozenset(known.partitions)
        else:
            rejected.append(
                DeletedTopic(topic_name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=NO_OFFSETS)
            )
    found = Deletion(rejected, partitions)
    if not partitions:
        return CoordinatorResult(found)
    new = StatePartitions(state.initializing, initialized, deleting)
    return CoordinatorResult(found, [records.state_partitions_record(group_id, new)])


def unknown_topic(name: str) -> DeletedTopic:
    """Return the answer for a topic that does not exist."""
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DeletedTopic(topic_name=name, error_code=error, error_message=error.default_message)


def complete_delete(env: GroupEnvironment, group_id: str, topic_ids: Iterable[bytes]) -> CoordinatorResult[None]:
    """Record that the share coordinator has deleted the states of topics."""
    group = env.find(group_id, ShareGroup)
    if group is None:
        return CoordinatorResult(None)
    gone = frozenset(topic_ids)
    state = group.state_partitions
    deleting = {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in gone}
    return CoordinatorResult(None, [records.state_partitions_record(group_id, state._replace(deleting=deleting))])


def delete_all(env: GroupEnvironment, group_id: str) -> CoordinatorResult[PartitionIds | None]:
    """Record every partition of a group as deleting, before the group is deleted; the response is None if it is not a share group.

    Raises:
        KafkaError: NON_EMPTY_GROUP.
    """
    group = env.find(group_id, ShareGroup)
    if group is None:
        return CoordinatorResult(None)
    group.validate_delete_group()
    state = group.state_partitions
    partitions: dict[bytes, frozenset[int]] = {}
    names: dict[bytes, str] = {}
    for topics in (state.initialized, state.initializing):
        for topic_id, topic in topics.items():
            partitions[topic_id] = partitions.get(topic_id, frozenset()) | topic.partitions
            names[topic_id] = topic.name
    for topic_id in state.deleting:
        known = env.image().topics.by_id.get(topic_id)
        if known is not None:
            partitions[topic_id], names[topic_id] = frozenset(known.partitions), known.name
    if not partitions:
        return CoordinatorResult(partitions)
    return CoordinatorResult(partitions, [records.state_partitions_record(group_id, StatePartitions({}, {}, names))])
