"""GroupCoordinator: the groups of this broker, each on the shard of its partition of `__consumer_offsets`.

A group's partition is Java's hash of its id modulo the number of partitions, as every client and every other broker computes it.
The coordinator finds the partition and runs an operation on its shard through the runtime. What clients may ask is in `requests` (groups
of every type) and `classic.requests` and its like (one type).

The code of the groups is imported by the factory that makes a shard: a broker that leads no partition starts without it.

Source: Kafka class `GroupCoordinatorService`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.partition_for import partition_for
from barnabas.records.compression import Compression
from barnabas.steps import Loop, gather, in_background

if TYPE_CHECKING:
    from barnabas.group.group_shard import GroupCoordinatorShard
    from barnabas.metadata.topics_image import TopicsDelta
    from barnabas.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
    from barnabas.transaction.marker_writer import Marker

__all__ = ["GroupCoordinator", "NewGroupShard", "Reply"]

R = TypeVar("R")
D = TypeVar("D")

Reply = Callable[[R], None]
"""Gives an answer to a request that waits for it."""

NewGroupShard = Callable[[int, CoordinatorTimer], "GroupCoordinatorShard"]
"""Makes an empty shard for a partition (`group_shard.shard_factory`)."""


class GroupCoordinator:
    """The group coordinator of one broker."""

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        log: CoordinatorLog,
        new_shard: NewGroupShard,
        *,
        loop: Loop,
        now_ms: Callable[[], int],
        partition_count: Callable[[], int] | None = None,
    ) -> None:
        """Make a coordinator that leads no partition.

        Args:
            log: the partitions of `__consumer_offsets`.
            partition_count: how many partitions the topic has (default: as configured).
        """
        self.config = config
        self.loop = loop
        self._partition_count = partition_count or (lambda: config.offsets_topic_num_partitions)
        self._runtime: CoordinatorRuntime[GroupCoordinatorShard] = CoordinatorRuntime(
            name="group",
            log=log,
            serde=RecordSerde("group"),
            new_shard=new_shard,
            loop=loop,
            now_ms=now_ms,
            write_timeout_ms=config.offsets_commit_timeout_ms,
            max_batch_bytes=config.max_batch_bytes,
            compression=Compression(config.offsets_topic_compression_codec),
        )

    def __repr__(self) -> str:
        return f"<GroupCoordinator active={self._runtime.active_partitions()}>"

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group_id, self._partition_count())

    def on_elected(self, partition: int, epoch: int) -> None:
        """Load a partition of `__consumer_offsets` that this broker leads now."""
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """Give up a partition that this broker no longer leads."""
        self._runtime.on_resigned(partition, epoch)

    def on_topics_changed(self, delta: TopicsDelta) -> None:
        """Tell the groups that topics were created, changed or deleted."""
        names = [topic.name for topics in (delta.changed, delta.deleted) for topic in topics.values()]
        has_new, grown = bool(delta.created()), delta.grown()
        self._write_all(lambda shard: shard.on_topics_changed(names, has_new=has_new, grown=grown))

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        """Delete the offsets of deleted topics (name to id); offsets that cannot be deleted now expire later."""
        self._write_all(lambda shard: shard.on_topics_deleted(topics))

    def _write_all(self, operation: Callable[[GroupCoordinatorShard], CoordinatorResult[None]]) -> None:
        for future in self._runtime.schedule_write_all(operation):
            in_background(_unless_refused(future), self.loop)

    def close(self) -> None:
        """Give up all groups; members that wait get NOT_COORDINATOR."""
        self._runtime.close()

    def active_shards(self) -> list[GroupCoordinatorShard]:
        """Return the shards that are loaded, for metrics."""
        return self._runtime.active_shards()

    def write(
        self, group_id: str, operation: Callable[[GroupCoordinatorShard], CoordinatorResult[R]]
    ) -> asyncio.Future[R]:
        """Run an operation on the shard of a group; the future fails with KafkaError (see `append_error`)."""
        return self._runtime.schedule_write(self.partition_of(group_id), operation)

    def read(self, group_id: str, operation: Callable[[GroupCoordinatorShard], R]) -> asyncio.Future[R]:
        """Compute an answer from the shard of a group; the future fails with KafkaError."""
        return self._runtime.schedule_read(self.partition_of(group_id), operation)

    def read_all(self, operation: Callable[[GroupCoordinatorShard], R]) -> Iterator[asyncio.Future[R]]:
        """Compute an answer from each shard that this broker leads, as they are taken; those still loading fail."""
        return self._runtime.schedule_read_all(operation)

    async def write_and_wait(
        self, group_id: str, operation: Callable[[GroupCoordinatorShard, Reply[R]], CoordinatorResult[None]]
    ) -> R:
        """Run an operation that passes a reply on, and wait for the reply.

        The reply may come before the records of the operation are committed, or from a later operation or timer.

        Raises: KafkaError if the operation is refused before the reply.
        """
        answer: asyncio.Future[R] = self.loop.create_future()

        def reply(response: R) -> None:
            if not answer.done():
                answer.set_result(response)

        async def refused() -> None:
            try:
                await self.write(group_id, lambda shard: operation(shard, reply))
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)

        written = in_background(refused(), self.loop)
        try:
            return await answer
        except asyncio.CancelledError:
            written.cancel()
            raise

    async def describe(
        self,
        group_ids: Sequence[str],
        described_group: Callable[..., D],
        describe: Callable[[GroupCoordinatorShard, str], D],
        *,
        accepts_empty_id: bool = False,
    ) -> list[D]:
        """Describe groups in the order asked; an error is in its group's entry.

        Args:
            described_group: the response's class for one group.
            describe: describes one group; raises KafkaError.
        """

        def failed(group_id: str, error: KafkaError) -> D:
            code, message = append_error(error), append_message(error)
            return described_group(group_id=group_id, error_code=code, error_message=message)

        def on_shard(shard: GroupCoordinatorShard, group_id: str) -> D:
            try:
                return describe(shard, group_id)
            except KafkaError as error:
                return failed(group_id, error)

        async def one(group_id: str) -> D:
            if not group_id and not accepts_empty_id:
                return failed(group_id, KafkaError(ErrorCode.INVALID_GROUP_ID))
            try:
                return await self.read(group_id, lambda shard: on_shard(shard, group_id))
            except KafkaError as error:
                return failed(group_id, error)

        return await gather((one(group_id) for group_id in group_ids), self.loop)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, version: int, guard: VerificationGuard | None
    ) -> asyncio.Future[TxnOffsetCommitResponse]:
        """Commit offsets of topics that exist, within a transaction.

        Args:
            guard: proves that the transaction includes the group's partition.

        Returns: a future; it fails with KafkaError, which is the error of every partition.
        """
        return self._runtime.schedule_transactional_write(
            self.partition_of(request.group_id),
            request.producer_id,
            request.producer_epoch,
            lambda shard: shard.commit_transactional_offsets(request, version),
            guard,
        )

    def complete_transaction(self, partition: int, marker: Marker, batch: bytearray) -> asyncio.Future[None]:
        """Write a transaction's marker into a partition of `__consumer_offsets`, and settle its pending offsets.

        Args:
            batch: the marker as it is written to the log.

        Returns: a future; it fails with KafkaError.
        """
        return self._runtime.complete_transaction(
            partition,
            marker.producer_id,
            batch=batch,
            committed=marker.commit,
            transaction_version=marker.transaction_version,
        )


async def _unless_refused(written: asyncio.Future[None]) -> None:
    """Wait for a write that need not succeed: a partition that is given up takes its groups along."""
    try:
        await written
    except KafkaError:
        return
