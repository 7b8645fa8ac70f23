"""Where share groups are: start offsets from the share coordinator, ends from the logs, and the lag between them (control plane).

    lag = end of the partition − start offset − finished records beyond the start offset

What nobody knows is -1, and no error: the group may not have begun, or not be there.

Source: Kafka class `GroupCoordinatorService` (`describeShareGroupOffsets`); KIP-932, KIP-1226.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.future_steps import FutureMaker, after_all, when_done
from barnabas.group.group import GroupType
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.share.groups import ShareGroups
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from barnabas.share.share_coordinator_shard import StateSummary

if TYPE_CHECKING:
    from barnabas.group.group_shard import GroupCoordinatorShard

UNINITIALIZED = -1

OffsetsOfGroup = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
OffsetsOfTopic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
OffsetsOfPartition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


def share_part(shard: GroupCoordinatorShard) -> ShareGroups:
    """A shard's share groups."""
    part = shard.part(GroupType.SHARE)
    assert isinstance(part, ShareGroups), part
    return part


class StateKeeper(Protocol):
    """The share coordinator, wherever it is; each call fails with KafkaError."""

    def initialize_state(
        self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int
    ) -> asyncio.Future[None]: ...

    def read_summary(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[StateSummary]: ...

    def delete_state(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[None]: ...


class DescribedOffsets:
    """Answers for DescribeShareGroupOffsets.

    Args:
        end_offset: the high watermark of a partition by topic name; raises KafkaError.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        keeper: StateKeeper,
        *,
        loop: FutureMaker,
        image: Callable[[], MetadataImage],
        end_offset: Callable[[str, int], int],
    ) -> None:
        self._coordinator = coordinator
        self._keeper = keeper
        self._loop = loop
        self._image = image
        self._end_offset = end_offset

    def of(
        self, request: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> asyncio.Future[OffsetsOfGroup]:
        """Start offsets and lags of partitions, or of all that the group has; errors are in the answer."""
        group_id = request.group_id
        if request.topics is None:
            future = self._coordinator.read(group_id, lambda shard: share_part(shard).initialized_partitions(group_id))
            answer: asyncio.Future[OffsetsOfGroup] = self._loop.create_future()

            def on_partitions(done: asyncio.Future[dict[bytes, frozenset[int]]]) -> None:
                error = done.exception()
                if isinstance(error, KafkaError):
                    code = append_error(error)
                    answer.set_result(
                        OffsetsOfGroup(group_id=group_id, error_code=code, error_message=code.default_message)
                    )
                    return
                topics = self._image().topics.by_id
                wanted = [
                    (topics[topic_id].name, topic_id, sorted(partitions))
                    for topic_id, partitions in done.result().items()
                    if topic_id in topics
                ]
                self._summaries(group_id, wanted, [], answer)

            when_done(future, on_partitions)
            return answer
        answer = self._loop.create_future()
        wanted, unknown = [], []
        for topic in request.topics:
            known = self._image().topics.by_name.get(topic.topic_name)
            if known is not None:
                wanted.append((topic.topic_name, bytes(known.topic_id), list(topic.partitions)))
            else:
                # Nothing is known about the topic, which is no error.
                unknown.append(
                    OffsetsOfTopic(
                        topic_name=topic.topic_name,
                        partitions=[
                            OffsetsOfPartition(partition_index=index, start_offset=UNINITIALIZED)
                            for index in topic.partitions
                        ],
                    )
                )
        self._summaries(group_id, wanted, unknown, answer)
        return answer

    def _summaries(
        self,
        group_id: str,
        wanted: Sequence[tuple[str, bytes, list[int]]],
        unknown: list[OffsetsOfTopic],
        answer: asyncio.Future[OffsetsOfGroup],
    ) -> None:
        calls = {
            (topic_id, index): self._keeper.read_summary(group_id, topic_id, index)
            for _, topic_id, partitions in wanted
            for index in partitions
        }

        def done() -> None:
            topics = [
                OffsetsOfTopic(
                    topic_name=name,
                    topic_id=topic_id,
                    partitions=[self._offsets_of(name, index, calls[topic_id, index]) for index in partitions],
                )
                for name, topic_id, partitions in wanted
            ]
            answer.set_result(OffsetsOfGroup(group_id=group_id, topics=[*topics, *unknown]))

        after_all(calls.values(), done)

    def _offsets_of(self, topic: str, index: int, call: asyncio.Future[StateSummary]) -> OffsetsOfPartition:
        """One partition; what the share coordinator does not know is absent, not an error."""
        if call.exception() is not None:
            return OffsetsOfPartition(partition_index=index, start_offset=UNINITIALIZED, lag=UNINITIALIZED)
        summary = call.result()
        found = OffsetsOfPartition(
            partition_index=index,
            start_offset=summary.start_offset,
            leader_epoch=summary.leader_epoch,
            lag=UNINITIALIZED,
        )
        if UNINITIALIZED not in (summary.start_offset, summary.delivery_complete_count):
            try:
                end = self._end_offset(topic, index)
            except KafkaError as error:
                return OffsetsOfPartition(
                    partition_index=index, error_code=error.code, error_message=error.code.default_message
                )
            found.lag = end - summary.start_offset - summary.delivery_complete_count
        return found
