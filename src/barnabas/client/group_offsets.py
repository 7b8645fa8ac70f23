"""Offsets of groups: list, commit and delete them.

A share group commits nothing. It has a start offset for each partition, the first record that is not finished, and its coordinator
counts the unfinished records from there on.

Sources: OffsetCommit (8), OffsetFetch (9), OffsetDelete (47), DescribeShareGroupOffsets (90); KIP-496, KIP-709, KIP-932, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

# From version 10 on these requests name topics by id; people type names.
_HIGHEST_WITH_NAMES = 9


class CommittedOffset(NamedTuple):
    """A position a group committed: the next offset to read."""

    offset: int
    metadata: str | None = ""
    leader_epoch: int = -1


class ShareOffset(NamedTuple):
    """Where a share group is in a partition; `lag` is None if the broker does not count it."""

    start_offset: int
    lag: int | None


def list_group_offsets(
    cluster: Cluster,
    group_id: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """Return what a group committed, without the partitions that have no committed offset.

    Args:
        partitions: only these; None for all.
        require_stable: wait for pending transactions instead of returning the offset before them.
    """
    request_class = messages.OffsetFetchRequest
    wanted = None if partitions is None else by_topic(partitions)
    if wanted == {}:
        return {}

    def ask(
        connection: BlockingConnection, batch: list[str]
    ) -> dict[str, dict[TopicPartition, CommittedOffset] | KafkaError]:
        request = request_class(require_stable=require_stable)
        version = connection.version_for(request, _HIGHEST_WITH_NAMES)
        request.require_stable &= version >= 7
        if version >= 8:
            group = request_class.OffsetFetchRequestGroup(group_id=group_id, topics=None)
            if wanted is not None:
                group.topics = [
                    request_class.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in wanted.items()
                ]
            request.groups = [group]
            (answer,) = connection.request(request, version=version).groups
        else:
            request.group_id = group_id
            request.topics = None
            if wanted is not None:
                request.topics = [
                    request_class.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                    for name, indexes in wanted.items()
                ]
            answer = connection.request(request, version=version)
        return {group_id: outcome_of(answer.error_code) or _committed(answer)}

    return result(cluster.ask_each([group_id], cluster.coordinators, ask)[group_id])


def _committed(
    answer: messages.OffsetFetchResponse | messages.OffsetFetchResponse.OffsetFetchResponseGroup,
) -> dict[TopicPartition, CommittedOffset]:
    committed: dict[TopicPartition, CommittedOffset] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code:
                raise error_for(each.error_code)
            if each.committed_offset >= 0:
                committed[TopicPartition(topic.name, each.partition_index)] = CommittedOffset(
                    each.committed_offset, each.metadata, each.committed_leader_epoch
                )
    return dict(sorted(committed.items()))


_Outcomes = dict[TopicPartition, KafkaError | None]


def alter_group_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> _Outcomes:
    """Commit offsets in the name of a group without members; None for each committed partition."""
    request_class = messages.OffsetCommitRequest

    def committed(topic: str, index: int) -> messages.OffsetCommitRequest.OffsetCommitRequestPartition:
        offset, metadata, leader_epoch = offsets[TopicPartition(topic, index)]
        return request_class.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> _Outcomes:
        topics = [
            request_class.OffsetCommitRequestTopic(name=name, partitions=[committed(name, index) for index in indexes])
            for name, indexes in by_topic(batch).items()
        ]
        request = request_class(group_id=group_id, topics=topics)
        return _per_partition(connection.request(request, highest=_HIGHEST_WITH_NAMES))

    return _ask_coordinator(cluster, group_id, offsets, ask)


def delete_group_offsets(cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]) -> _Outcomes:
    """Delete committed offsets of topics that the group does not read now; None for each deleted one."""
    request_class = messages.OffsetDeleteRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> _Outcomes:
        topics = [
            request_class.OffsetDeleteRequestTopic(
                name=name,
                partitions=[request_class.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
            )
            for name, indexes in by_topic(batch).items()
        ]
        response = connection.request(request_class(group_id=group_id, topics=topics))
        error = outcome_of(response.error_code)
        return dict.fromkeys(batch, error) if error else _per_partition(response)

    return _ask_coordinator(cluster, group_id, partitions, ask)


def _ask_coordinator(
    cluster: Cluster,
    group_id: str,
    partitions: Iterable[TopicPartition],
    ask: Callable[[BlockingConnection, list[TopicPartition]], _Outcomes],
) -> _Outcomes:
    return cluster.ask_each(
        partitions, lambda batch: dict.fromkeys(batch, cluster.coordinators([group_id])[group_id]), ask
    )


def _per_partition(response: messages.OffsetCommitResponse | messages.OffsetDeleteResponse) -> _Outcomes:
    return {
        TopicPartition(topic.name, each.partition_index): outcome_of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


def list_share_group_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """Return where a share group is, in every partition that it has read.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or UNSUPPORTED_VERSION from a broker without share groups.
    """
    request_class = messages.DescribeShareGroupOffsetsRequest

    def ask(
        connection: BlockingConnection, batch: list[str]
    ) -> dict[str, dict[TopicPartition, ShareOffset] | KafkaError]:
        groups = [request_class.DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=None) for each in batch]
        return {
            group.group_id: outcome_of(group.error_code, group.error_message)
            or {
                TopicPartition(topic.topic_name, partition.partition_index): ShareOffset(
                    partition.start_offset, None if partition.lag < 0 else partition.lag
                )
                for topic in group.topics
                for partition in topic.partitions
                if not partition.error_code and partition.start_offset >= 0
            }
            for group in connection.request(request_class(groups=groups)).groups
        }

    return result(cluster.ask_each([group_id], cluster.coordinators, ask)[group_id])
