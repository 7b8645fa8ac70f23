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
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
)

NO_OFFSETS = "There is no offset information to delete."

AlteredTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlteredPartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
DeletedTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


class Alteration(NamedTuple):
    """The response so far, and the offsets to initialize partitions with."""

    topics: list[AlteredTopic]
    state_epoch: int
    offsets: Mapping[bytes, Mapping[int, int]]


class Deletion(NamedTuple):
    """The topics that cannot be deleted, and the partitions to delete."""

    rejected: list[DeletedTopic]
    partitions: PartitionIds


def alter(
    env: GroupEnvironment,
    group_id: str,
    topics: Iterable[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic],
) -> CoordinatorResult[Alteration]:
    """Record partitions as initializing, at new offsets.

    Raises:
        KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of another type.
    """
    group = env.require(group_id, ShareGroup) if group_id in env.groups else ShareGroup(group_id, env.subscribers)
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    answers = []
    noted: dict[bytes, TopicPartitions] = {}
    offsets: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        known = env.image().topics.by_name.get(topic.topic_name)
        answer = AlteredTopic(topic_name=topic.topic_name)
        if known is not None:
            answer.topic_id = known.topic_id
        for partition in topic.partitions:
            index = partition.partition_index
            answered = AlteredPartition(partition_index=index)
            if known is None or index not in known.partitions:
                answered.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answered.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.default_message
            else:
                offsets.setdefault(bytes(known.topic_id), {})[index] = partition.start_offset
            answer.partitions.append(answered)
        answers.append(answer)
        if known is not None:
            begun = frozenset(offsets.get(bytes(known.topic_id), ()))
            noted[bytes(known.topic_id)] = TopicPartitions(known.name, begun, env.now_ms())
    found = Alteration(answers, group.group_epoch, offsets)
    if not noted:
        return CoordinatorResult(found)
    state = add_initializing(group.state_partitions, noted)
    return CoordinatorResult(found, [records.state_partitions_record(group_id, state)])


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
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            rejected.append(DeletedTopic(topic_name=name, error_code=error, error_message=error.default_message))
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
