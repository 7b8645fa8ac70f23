"""ShareCoordinator: keeps the delivery state of share groups on the partitions of `__share_group_state`.

Java's hash of `group:topic id:partition` names the partition of the topic that holds a share partition's state. Operations run on the
`CoordinatorRuntime`; each raises a KafkaError if this broker does not coordinate the share partition or is still loading its state.

`__share_group_state` is not compacted. Two periodic jobs keep it short: one writes share partitions again that had no change for long,
the other deletes records from the front that snapshots have made redundant.

Sources: KIP-932; Kafka class `ShareCoordinatorService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.coordinator.result import CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.partition_for import partition_for, share_coordinator_key
from barnabas.protocol.topic_names import SHARE_GROUP_STATE
from barnabas.records.compression import Compression
from barnabas.steps import Loop, in_background, sleep

if (
    TYPE_CHECKING
):  # The shard's code is imported by `new_shard`, with the first partition of the topic that this broker leads.
    from barnabas.share.share_coordinator_shard import ShareCoordinatorShard, StateSummary, StateWrite
    from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """The settings share.coordinator.*."""

    write_timeout_ms: int = 5_000
    state_topic_prune_interval_ms: int = 300_000
    cold_partition_snapshot_interval_ms: int = 300_000
    state_topic_compression_codec: int = 0
    max_batch_bytes: int = 1_048_588


class ShareCoordinator:
    """The share coordinator of one broker.

    Args:
        partition_count: the number of partitions of `__share_group_state`.
        new_shard: makes an empty shard.
        delete_records: deletes the records of a partition of the topic below an offset; raises KafkaError.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        log: CoordinatorLog,
        *,
        loop: Loop,
        now_ms: Callable[[], int],
        partition_count: Callable[[], int],
        new_shard: Callable[[], ShareCoordinatorShard],
        delete_records: Callable[[int, int], None],
    ) -> None:
        self._config = config
        self._log = log
        self._loop = loop
        self._now_ms = now_ms
        self._partition_count = partition_count
        self._new_shard = new_shard
        self._delete_records = delete_records
        self._runtime: CoordinatorRuntime[ShareCoordinatorShard] | None = None
        self._jobs: list[asyncio.Future[None]] = []
        self._pruned: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<ShareCoordinator {self._runtime!r}>"

    @property
    def is_in_use(self) -> bool:
        """Whether this broker has ever led a partition of the topic."""
        return self._runtime is not None

    def on_elected(self, partition: int, epoch: int) -> None:
        """Load the states of a partition of the topic that this broker now leads."""
        if self._runtime is None:
            self._runtime = self._new_runtime()
            config = self._config
            self._jobs = [
                in_background(self._every(config.state_topic_prune_interval_ms, self.prune), self._loop),
                in_background(
                    self._every(config.cold_partition_snapshot_interval_ms, self.snapshot_cold_partitions), self._loop
                ),
            ]
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """Give up a partition of the topic that another broker leads now."""
        self._pruned.pop(partition, None)
        if self._runtime is not None:
            self._runtime.on_resigned(partition, epoch)

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Delete the states of deleted topics."""
        self._write_in_all_shards(lambda shard: shard.delete_topics(topic_ids))

    def close(self) -> None:
        """Give up every partition."""
        for job in self._jobs:
            job.cancel()
        if self._runtime is not None:
            self._runtime.close()

    def _new_runtime(self) -> CoordinatorRuntime[ShareCoordinatorShard]:
        return CoordinatorRuntime(
            name="share",
            log=self._log,
            serde=RecordSerde("share"),
            new_shard=lambda partition, timer: self._new_shard(),
            loop=self._loop,
            now_ms=self._now_ms,
            write_timeout_ms=self._config.write_timeout_ms,
            max_batch_bytes=self._config.max_batch_bytes,
            compression=Compression(self._config.state_topic_compression_codec),
        )

    # Operations on a share partition's state. Each raises KafkaError: what the shard rejects, NOT_COORDINATOR,
    # COORDINATOR_LOAD_IN_PROGRESS, or what `append_error` makes of the log's error.

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Start a new state; see `ShareCoordinatorShard.initialize`."""
        await self._run(key, lambda shard: shard.initialize(key, state_epoch, start_offset))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        """Return the state to a leader of the partition."""
        return await self._run(key, lambda shard: shard.read(key, leader_epoch))

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        """Write a leader's change."""
        await self._run(key, lambda shard: shard.write(key, write))

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        """Return start offset and counts."""
        return await self._run(key, lambda shard: shard.summary(key))

    async def delete(self, key: SharePartitionKey) -> None:
        """Delete a share partition's state."""
        await self._run(key, lambda shard: shard.delete(key))

    async def _run(
        self, key: SharePartitionKey, operation: Callable[[ShareCoordinatorShard], CoordinatorResult[T]]
    ) -> T:
        if self._runtime is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

        def run(shard: ShareCoordinatorShard) -> CoordinatorResult[Any]:
            try:
                return operation(shard)
            except KafkaError as rejection:  # The shard's own answer: not to be taken for an error of the log.
                return CoordinatorResult(rejection)

        partition = partition_for(share_coordinator_key(*key), self._partition_count())
        try:
            outcome: T | KafkaError = await self._runtime.schedule_write(partition, run)
        except KafkaError as error:
            raise KafkaError(append_error(error), error.message) from error
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome

    async def _every(self, interval_ms: int, job: Callable[[], None]) -> None:
        while True:
            await sleep(interval_ms / 1000, self._loop)
            job()

    def snapshot_cold_partitions(self) -> None:
        """Write again the share partitions that had no change for long."""
        self._write_in_all_shards(lambda shard: shard.snapshot_cold_partitions())

    def prune(self) -> None:
        """Delete the records that snapshots have made redundant."""
        if self._runtime is not None:
            for partition in self._runtime.active_partitions():
                redundant = self._runtime.schedule_read(partition, lambda shard: shard.redundant_offset())
                in_background(self._prune(partition, redundant), self._loop)

    async def _prune(self, partition: int, redundant: asyncio.Future[int | None]) -> None:
        try:
            offset = await redundant
            if offset is not None and self._pruned.get(partition) != offset:
                self._delete_records(partition, offset)
                self._pruned[partition] = offset
        except KafkaError as error:
            logger.warning("cannot prune %s-%d, will retry: %s", SHARE_GROUP_STATE, partition, error)

    def _write_in_all_shards(self, operation: Callable[[ShareCoordinatorShard], CoordinatorResult[None]]) -> None:
        if self._runtime is not None:
            for written in self._runtime.schedule_write_all(operation):
                in_background(_log_failure(written), self._loop)


async def _log_failure(written: asyncio.Future[None]) -> None:
    try:
        await written
    except KafkaError as error:
        logger.info("share coordinator: %s", error)
