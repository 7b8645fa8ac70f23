"""ShareCoordinator: keeps the delivery state of share groups on the partitions of `__share_group_state` (control plane).

A share partition's state lives in the partition that Java's hash of `group:topic id:partition` names. Its operations run on the
`CoordinatorRuntime`; what a coordinator cannot do (it is loading, or elsewhere) becomes an error of that share partition.

Two jobs keep the topic short, which is not compacted: share partitions without news are written again now and then, and what
all snapshots have made redundant is deleted from the front.

The code of the shards is imported with the first partition led: a broker without share groups does not pay for it.

Sources: KIP-932; Kafka class `ShareCoordinatorService`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.future_steps import answered
from barnabas.coordinator.partition_for import partition_for
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str

if TYPE_CHECKING:
    from barnabas.coordinator.coordinator_log import CoordinatorLog
    from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime, Loop
    from barnabas.coordinator.result import CoordinatorResult
    from barnabas.coordinator.timer import Cancellable
    from barnabas.share.share_coordinator_shard import (
        ShareCoordinatorShard,
        StateOutcome,
        StateSummary,
        StateWrite,
    )
    from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey

logger = logging.getLogger(__name__)

SHARE_STATE_TOPIC = "__share_group_state"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """The settings share.coordinator.*."""

    snapshot_update_records_per_snapshot: int = 500
    write_timeout_ms: int = 5_000
    state_topic_prune_interval_ms: int = 300_000
    cold_partition_snapshot_interval_ms: int = 300_000
    state_topic_compression_codec: int = 0
    max_batch_bytes: int = 1_048_588


class RecordDeleter(Protocol):
    """Deletes the records of a partition of the topic below an offset."""

    def __call__(self, partition: int, offset: int) -> None:
        """Raises: KafkaError."""
        ...


def coordinator_key(group_id: str, topic_id: bytes, partition: int) -> str:
    """What FindCoordinator asks about and the hash is taken of."""
    return f"{group_id}:{uuid_to_str(topic_id)}:{partition}"


class ShareCoordinator:
    """The share coordinator of one broker.

    Args:
        partition_count: of `__share_group_state`.
        topic_partitions: how many partitions the topic of an id has, None when there is none.
        delete_records: shortens a partition of the topic.
    """

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        log: CoordinatorLog,
        *,
        loop: Loop,
        now_ms: Callable[[], int],
        partition_count: Callable[[], int],
        topic_partitions: Callable[[bytes], int | None],
        delete_records: RecordDeleter,
    ) -> None:
        self._config = config
        self._log = log
        self._loop = loop
        self._now_ms = now_ms
        self._partition_count = partition_count
        self._topic_partitions = topic_partitions
        self._delete_records = delete_records
        self._runtime: CoordinatorRuntime[ShareCoordinatorShard] | None = None
        self._timers: dict[str, Cancellable] = {}
        self._pruned: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<ShareCoordinator {self._runtime!r}>"

    @property
    def is_in_use(self) -> bool:
        """Whether the topic of states has ever had a partition led here."""
        return self._runtime is not None

    # -- elections ---------------------------------------------------------------------------------------------------

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker leads a partition of the topic: load its states."""
        if self._runtime is None:
            self._runtime = self._new_runtime()
            self._every(self._config.state_topic_prune_interval_ms, self.prune)
            self._every(self._config.cold_partition_snapshot_interval_ms, self.snapshot_cold_partitions)
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """This broker leads the partition no more."""
        self._pruned.pop(partition, None)
        if self._runtime is not None:
            self._runtime.on_resigned(partition, epoch)

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Forget the states of topics that are gone."""
        if self._runtime is not None:
            for future in self._runtime.schedule_write_all(lambda shard: shard.delete_topics(topic_ids)):
                future.add_done_callback(_log_failure)

    def close(self) -> None:
        """Give up every partition."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._runtime is not None:
            self._runtime.close()

    def _new_runtime(self) -> CoordinatorRuntime[ShareCoordinatorShard]:
        from barnabas.coordinator.coordinator_log import RecordSerde
        from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
        from barnabas.records.compression import Compression
        from barnabas.share.share_coordinator_shard import ShareCoordinatorShard

        return CoordinatorRuntime(
            name="share",
            log=self._log,
            serde=RecordSerde("share"),
            new_shard=lambda partition, timer: ShareCoordinatorShard(
                now_ms=self._now_ms,
                partition_count=self._topic_partitions,
                updates_per_snapshot=self._config.snapshot_update_records_per_snapshot,
                cold_interval_ms=self._config.cold_partition_snapshot_interval_ms,
            ),
            loop=self._loop,
            now_ms=self._now_ms,
            write_timeout_ms=self._config.write_timeout_ms,
            max_batch_bytes=self._config.max_batch_bytes,
            compression=Compression(self._config.state_topic_compression_codec),
        )

    # -- states ------------------------------------------------------------------------------------------------------

    def partition_of(self, key: SharePartitionKey) -> int:
        """The partition of the topic where a share partition's state is."""
        return partition_for(coordinator_key(*key), self._partition_count())

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> asyncio.Future[StateOutcome[None]]:
        """Begin a share partition's state anew."""
        return self._run(key, lambda shard: shard.initialize(key, state_epoch, start_offset))

    def read(self, key: SharePartitionKey, leader_epoch: int) -> asyncio.Future[StateOutcome[ShareGroupOffset]]:
        """The state, for a leader of the partition."""
        return self._run(key, lambda shard: shard.read(key, leader_epoch))

    def write(self, key: SharePartitionKey, write: StateWrite) -> asyncio.Future[StateOutcome[None]]:
        """Write down what a leader has done."""
        return self._run(key, lambda shard: shard.write(key, write))

    def summary(self, key: SharePartitionKey) -> asyncio.Future[StateOutcome[StateSummary]]:
        """Start offset and counts."""
        return self._run(key, lambda shard: shard.summary(key))

    def delete(self, key: SharePartitionKey) -> asyncio.Future[StateOutcome[None]]:
        """Forget a share partition."""
        return self._run(key, lambda shard: shard.delete(key))

    def _run(
        self,
        key: SharePartitionKey,
        operation: Callable[[ShareCoordinatorShard], CoordinatorResult[StateOutcome[T]]],
    ) -> asyncio.Future[StateOutcome[T]]:
        from barnabas.share.share_coordinator_shard import StateOutcome

        if self._runtime is None:
            nowhere: asyncio.Future[StateOutcome[T]] = self._loop.create_future()
            nowhere.set_result(StateOutcome.refused(ErrorCode.NOT_COORDINATOR))
            return nowhere
        future = self._runtime.schedule_write(self.partition_of(key), operation)
        return answered(
            self._loop,
            future,
            lambda outcome: outcome,
            lambda error: StateOutcome.refused(append_error(error), error.message),
        )

    # -- keeping the topic short -------------------------------------------------------------------------------------

    def _every(self, interval_ms: int, work: Callable[[], None]) -> None:
        name = work.__name__

        def again() -> None:
            self._timers[name] = self._loop.call_later(interval_ms / 1000, again)
            work()

        self._timers[name] = self._loop.call_later(interval_ms / 1000, again)

    def snapshot_cold_partitions(self) -> None:
        """Write again what has had no news for long."""
        if self._runtime is not None:
            for future in self._runtime.schedule_write_all(lambda shard: shard.snapshot_cold_partitions()):
                future.add_done_callback(_log_failure)

    def prune(self) -> None:
        """Delete what the snapshots have made redundant."""
        if self._runtime is None:
            return
        for partition in self._runtime.active_partitions():
            future = self._runtime.schedule_read(partition, lambda shard: shard.redundant_offset())
            future.add_done_callback(partial(self._prune, partition))

    def _prune(self, partition: int, future: asyncio.Future[int | None]) -> None:
        if future.cancelled() or future.exception() is not None:
            return  # The partition is loading or elsewhere; another turn comes.
        offset = future.result()
        if offset is None or self._pruned.get(partition) == offset:
            return
        try:
            self._delete_records(partition, offset)
        except KafkaError as error:
            logger.warning("%s-%d cannot be pruned to %d: %s", SHARE_STATE_TOPIC, partition, offset, error)
        else:
            self._pruned[partition] = offset


def _log_failure(future: asyncio.Future[None]) -> None:
    if not future.cancelled() and future.exception() is not None:
        logger.info("Share coordinator: %s", future.exception())
