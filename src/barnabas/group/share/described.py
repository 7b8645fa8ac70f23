"""DescribedOffsets: start offsets of share groups from the share coordinator, ends from the logs, and the lag between them.

    lag = end of the partition − start offset − finished records beyond the start offset

Unknown offsets and lags are -1, not errors: the group may not have started, or may not exist.

Source: Kafka class `GroupCoordinatorService` (`describeShareGroupOffsets`); KIP-932, KIP-1226.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from itertools import islice
from typing import Any

from barnabas.coordinator.append_error import append_error
from barnabas.group.group import GroupType
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import GroupCoordinatorShard
from barnabas.group.share.groups import ShareGroups
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from barnabas.share.persister import ShareStates
from barnabas.share.state_records import SharePartitionKey
from barnabas.steps import Loop, gather
from barnabas.turns import ELEMENT, RECORD, pace

UNINITIALIZED = -1
LAG_MAX = 2**63 - 1

EndOffset = Callable[[str, int], Coroutine[Any, Any, int]]
"""Returns the high watermark of a partition by topic name; raises KafkaError."""

OffsetsOfGroup = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
OffsetsOfTopic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
OffsetsOfPartition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


def share_part(shard: GroupCoordinatorShard) -> ShareGroups:
    """Return a shard's share groups."""
    part = shard.part(GroupType.SHARE)
    assert isinstance(part, ShareGroups), part
    return part


class DescribedOffsets:
    """Answers DescribeShareGroupOffsets.

    Args:
        end_offset: returns the high watermark of a partition by topic name; raises KafkaError.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        persister: ShareStates,
        *,
        loop: Loop,
        image: Callable[[], MetadataImage],
        end_offset: EndOffset,
    ) -> None:
        self._coordinator = coordinator
        self._persister = persister
        self._loop = loop
        self._image = image
        self._end_offset = end_offset

    def __repr__(self) -> str:
        return f"<DescribedOffsets {self._coordinator!r}>"

    async def of(
        self, request: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> OffsetsOfGroup:
        """Return start offsets and lags of the named partitions, or of all that the group has; errors are in the answer."""
        group_id, topics = request.group_id, self._image().topics
        wanted: list[tuple[str, bytes, Sequence[int]]] = []
        unknown = []
        if request.topics is None:
            try:
                initialized = await self._coordinator.read(
                    group_id, lambda shard: share_part(shard).initialized_partitions(group_id)
                )
            except KafkaError as error:
                code = append_error(error)
                return OffsetsOfGroup(group_id=group_id, error_code=code, error_message=code.default_message)
            for topic_id, partitions in initialized.items():
                if topic_id in topics.by_id:
                    wanted.append((topics.by_id[topic_id].name, topic_id, sorted(partitions)))
        for topic in request.topics or ():
            await pace(ELEMENT)
            known = topics.by_name.get(topic.topic_name)
            if known is not None:
                wanted.append((topic.topic_name, bytes(known.topic_id), topic.partitions))
            else:
                nothing = [
                    OffsetsOfPartition(partition_index=index, start_offset=UNINITIALIZED) for index in topic.partitions
                ]
                unknown.append(OffsetsOfTopic(topic_name=topic.topic_name, partitions=nothing))
        reads = (
            self._partition(name, SharePartitionKey(group_id, topic_id, index))
            for name, topic_id, partitions in wanted
            for index in partitions
        )
        offsets = iter(await gather(reads, self._loop))
        described = []
        for name, topic_id, indexes in wanted:
            await pace(RECORD)
            found = list(islice(offsets, len(indexes)))
            described.append(OffsetsOfTopic(topic_name=name, topic_id=topic_id, partitions=found))
        return OffsetsOfGroup(group_id=group_id, topics=[*described, *unknown])

    async def _partition(self, topic: str, key: SharePartitionKey) -> OffsetsOfPartition:
        found = OffsetsOfPartition(partition_index=key.partition, start_offset=UNINITIALIZED, lag=UNINITIALIZED)
        try:
            summary = await self._persister.summary(key)
        except KafkaError:
            return found
        found.start_offset = summary.start_offset
        found.leader_epoch = summary.leader_epoch
        if UNINITIALIZED not in (summary.start_offset, summary.delivery_complete_count):
            try:
                end = await self._end_offset(topic, key.partition)
            except KafkaError as error:
                return OffsetsOfPartition(
                    partition_index=key.partition, error_code=error.code, error_message=error.code.default_message
                )
            # An administrator may have set any start offset, also one far below zero.
            found.lag = min(end - summary.start_offset - summary.delivery_complete_count, LAG_MAX)
        return found
