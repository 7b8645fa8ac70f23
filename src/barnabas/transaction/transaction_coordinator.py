"""TransactionCoordinator: the transactional ids of this broker.

It finds the partition of a transactional id (`partition_for`), runs the operation on that partition's shard through the runtime, has the
markers written when a transaction's outcome is committed, and returns the error codes that producers know.

    EndTxn ─► Prepare record, committed ─► markers ─► Complete record, with another producer id if a partition has a newer epoch
                                     └───► the client gets its response

The coordinator retries a Complete record that it cannot write; until then requests for the transactional id are
CONCURRENT_TRANSACTIONS. After a restart it repeats the second half for each transaction in a Prepare state. A client that closes its
connection stops nothing of this.

A broker imports the shard's code when it first leads a partition: most brokers start without it.

Sources: Kafka class `TransactionCoordinator`; KIP-98, KIP-890, KIP-939.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.partition_for import partition_for
from barnabas.records.record_batch import NO_PRODUCER_ID
from barnabas.steps import Loop, gather, in_background, sleep
from barnabas.transaction.config import TransactionCoordinatorConfig

if TYPE_CHECKING:
    from barnabas.coordinator.result import CoordinatorResult
    from barnabas.coordinator.timer import CoordinatorTimer
    from barnabas.transaction.marker_writer import MarkerWriter
    from barnabas.transaction.markers import TransactionMarkers
    from barnabas.transaction.producer_id_manager import ProducerIdManager
    from barnabas.transaction.remote_partitions import RemotePartitions
    from barnabas.transaction.transaction_metadata import TopicPartition, TransactionMetadata
    from barnabas.transaction.transaction_shard import (
        Ended,
        EndTxn,
        Initialized,
        InitProducerId,
        TransactionCoordinatorShard,
    )

logger = logging.getLogger(__name__)

R = TypeVar("R")
Outcome = TypeVar("Outcome", "Ended", "Initialized")

COMPLETE_RETRY_MS = 100


class TransactionCoordinator:
    """The transaction coordinator of one broker.

    Args:
        log: the partitions of `__transaction_state`.
        marker_writer: appends markers to this broker's partitions, for this coordinator and for others (WriteTxnMarkers).
        producer_ids: gives out new producer ids.
        partition_count: returns the number of the topic's partitions.
        transaction_version: returns the finalized level of transaction.version.
        cluster_writer: appends this coordinator's markers to the partitions of all brokers; None if this broker has them all.

    Attributes:
        remote_partitions: the coordinators of other brokers; None without others.
    """

    def __init__(
        self,
        config: TransactionCoordinatorConfig,
        log: CoordinatorLog,
        marker_writer: MarkerWriter,
        producer_ids: ProducerIdManager,
        *,
        loop: Loop,
        now_ms: Callable[[], int],
        partition_count: Callable[[], int],
        transaction_version: Callable[[], int],
        cluster_writer: MarkerWriter | None = None,
    ) -> None:
        self.config = config
        self.marker_writer = marker_writer
        self.remote_partitions: RemotePartitions | None = None
        self._ending_writer = cluster_writer or marker_writer
        self._loop = loop
        self._now_ms = now_ms
        self._producer_ids = producer_ids
        self._partition_count = partition_count
        self._transaction_version = transaction_version
        self._markers: TransactionMarkers | None = None
        self._runtime: CoordinatorRuntime[TransactionCoordinatorShard] = CoordinatorRuntime(
            name="transaction",
            log=log,
            serde=RecordSerde("transaction"),
            new_shard=self._new_shard,
            loop=loop,
            now_ms=now_ms,
            write_timeout_ms=config.request_timeout_ms,
            max_batch_bytes=config.max_batch_bytes,
        )

    def _new_shard(self, partition: int, timer: CoordinatorTimer) -> TransactionCoordinatorShard:
        # A broker without transactions does not import their code.
        from barnabas.transaction.markers import TransactionMarkers
        from barnabas.transaction.transaction_shard import TransactionCoordinatorShard

        self._markers = self._markers or TransactionMarkers(self._ending_writer, self._loop)
        return TransactionCoordinatorShard(
            partition,
            timer,
            config=self.config,
            now_ms=self._now_ms,
            transaction_version=self._transaction_version,
            on_prepared=self._end_prepared,
            on_timed_out=self._on_timed_out,
            on_dropped=self._markers.forget,
        )

    def __repr__(self) -> str:
        return f"<TransactionCoordinator active={self._runtime.active_partitions()}>"

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that a transactional id belongs to."""
        return partition_for(transactional_id, self._partition_count())

    def on_elected(self, partition: int, epoch: int) -> None:
        """Load a partition of `__transaction_state` that this broker has begun to lead."""
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """Give up a partition that this broker no longer leads."""
        self._runtime.on_resigned(partition, epoch)

    def close(self) -> None:
        """Give up all transactional ids; their next coordinator continues from the log."""
        self._runtime.close()

    def active_shards(self) -> list[TransactionCoordinatorShard]:
        """Return the loaded shards, for metrics."""
        return self._runtime.active_shards()

    async def init_producer_id(self, request: InitProducerId) -> Initialized:
        """Give a producer its id and epoch.

        Raises:
            KafkaError: CONCURRENT_TRANSACTIONS while the open transaction is aborted, PRODUCER_FENCED, or a coordinator error.
        """
        initialized = await self._run(
            request.transactional_id, lambda shard, fresh: shard.init_producer_id(request, fresh)
        )
        if initialized.prepared is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return initialized

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
    ) -> None:
        """Record that a transaction includes partitions.

        Raises: KafkaError.
        """
        _check(transactional_id)
        await _translated(
            self._runtime.schedule_write(
                self.partition_of(transactional_id),
                lambda shard: shard.add_partitions(
                    transactional_id, producer_id, producer_epoch, partitions, client_transaction_version
                ),
            )
        )

    async def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether the open transaction includes it.

        Raises: KafkaError.
        """
        _check(transactional_id)
        return await _translated(
            self._runtime.schedule_read(
                self.partition_of(transactional_id),
                lambda shard: shard.verify_partitions(transactional_id, producer_id, producer_epoch, partitions),
            )
        )

    async def end_transaction(self, request: EndTxn) -> Ended:
        """Commit or abort a transaction; return when the outcome is committed.

        Raises: KafkaError.
        """
        _check(request.transactional_id)
        return await self._run(request.transactional_id, lambda shard, fresh: shard.end(request, fresh))

    async def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of one transactional id.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND, or a coordinator error.
        """
        _check(transactional_id)

        def look(shard: TransactionCoordinatorShard) -> TransactionMetadata:
            found = shard.transactions.get(transactional_id)
            if found is None:
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            return found

        return await _translated(self._runtime.schedule_read(self.partition_of(transactional_id), look))

    async def list_all(self) -> list[TransactionMetadata]:
        """Return every transactional id of this broker.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while a partition is loading.
        """

        async def of_partition(read: asyncio.Future[list[TransactionMetadata]]) -> list[TransactionMetadata]:
            try:
                return await read
            except KafkaError as error:
                if error.code is ErrorCode.NOT_COORDINATOR:
                    return []  # A partition that failed to load does not hide the others.
                raise

        reads = self._runtime.schedule_read_all(lambda shard: list(shard.transactions.values()))
        return [found for part in await gather(map(of_partition, reads), self._loop) for found in part]

    async def _run(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinatorShard, int], CoordinatorResult[Outcome | None]],
    ) -> Outcome:
        """Run an operation that may end a transaction, and have its markers written when the outcome is committed.

        The client may close its connection, or its wait may time out: a decided transaction gets its markers all the same.
        """
        partition = self.partition_of(transactional_id)

        def run(fresh_producer_id: int) -> asyncio.Future[Outcome | None]:
            return self._runtime.schedule_write(
                partition, lambda shard: self._then_end(partition, operation(shard, fresh_producer_id))
            )

        outcome = await _translated(run(NO_PRODUCER_ID))
        while outcome is None:
            outcome = await _translated(run(await self._producer_ids.generate()))
        return outcome

    def _then_end(self, partition: int, result: CoordinatorResult[Outcome | None]) -> CoordinatorResult[Outcome | None]:
        prepared = None if result.response is None else result.response.prepared
        if prepared is None:
            return result

        def on_append(error: KafkaError | None) -> None:
            if error is None:
                self._end_prepared(partition, prepared)

        return result._replace(on_append=on_append)

    def _end_prepared(self, partition: int, prepared: TransactionMetadata) -> None:
        if self._runtime.epoch(partition) is not None:  # Else the partition's new leader has read the record.
            in_background(self._write_markers_and_complete(partition, prepared), self._loop)

    async def _write_markers_and_complete(self, partition: int, prepared: TransactionMetadata) -> None:
        assert self._markers is not None, "a transaction is decided on a broker that leads no partition"
        written = await self._markers.write(partition, lambda: self._runtime.epoch(partition), prepared)
        if written.is_given_up:
            return
        # If the shard is loaded again in the meantime, two of these end the same transaction, which is the same as one.
        while self._runtime.epoch(partition) is not None:
            try:
                fresh = await self._producer_ids.generate() if written.is_overtaken else NO_PRODUCER_ID
                await self._complete(partition, prepared, fresh)
                return
            except KafkaError as error:
                logger.info("%r: cannot write the Complete record, will retry: %s", prepared, error)
            await sleep(COMPLETE_RETRY_MS / 1000, self._loop)

    def _complete(self, partition: int, prepared: TransactionMetadata, fresh_producer_id: int) -> asyncio.Future[None]:
        return self._runtime.schedule_write(partition, lambda shard: shard.complete(prepared, fresh_producer_id))

    def _on_timed_out(self, metadata: TransactionMetadata) -> None:
        in_background(self._abort_timed_out(metadata), self._loop)

    async def _abort_timed_out(self, metadata: TransactionMetadata) -> None:
        try:
            aborted = await self._run(
                metadata.transactional_id, lambda shard, fresh: shard.abort_timed_out(metadata, fresh)
            )
        except KafkaError as error:
            logger.debug("%r: cannot abort it now, the next check will retry: %s", metadata, error)
            return
        if aborted.prepared is not None:
            logger.info("%r: aborted, it was open for more than %d ms", metadata, metadata.timeout_ms)


def _check(transactional_id: str) -> None:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


async def _translated(future: asyncio.Future[R]) -> R:
    """Await the runtime's result; turn the log's errors into a coordinator's."""
    try:
        return await future
    except KafkaError as error:
        code = append_error(error)
        raise error if code is error.code else KafkaError(code) from None
