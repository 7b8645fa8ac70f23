"""TransactionCoordinator: the front of the transactional ids of this broker (control plane).

It finds the partition of a transactional id, runs the operation on that partition's shard through the runtime, has markers written when
a transaction's outcome is committed, and turns what the runtime answers into the codes that producers know. A transactional id's partition
is Java's hash of it modulo the number of partitions of `__transaction_state`.

    EndTxn ─► Prepare record, committed ─► markers ─► Complete record
                                     └───► the client is answered

A Complete record that cannot be written is tried again; until then the transactional id answers CONCURRENT_TRANSACTIONS. After a restart
each transaction found in a Prepare state goes through the second half again.

The code of the transactions themselves is imported with the first partition led: most of a broker's starts are without it.

Sources: Kafka class `TransactionCoordinator`; KIP-98, KIP-890, KIP-939.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime, Loop
from barnabas.coordinator.future_steps import answered, gathered, when_done
from barnabas.coordinator.partition_for import partition_for
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.transaction.config import TransactionCoordinatorConfig

if TYPE_CHECKING:
    from barnabas.coordinator.result import CoordinatorResult
    from barnabas.coordinator.timer import CoordinatorTimer
    from barnabas.transaction.marker_writer import MarkerWriter
    from barnabas.transaction.markers import TransactionMarkers
    from barnabas.transaction.producer_id_manager import ProducerIdManager
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

TRANSACTION_STATE_TOPIC = "__transaction_state"
NO_PRODUCER_ID = -1
COMPLETE_RETRY_MS = 100


class TransactionCoordinator:
    """The transaction coordinator of one broker.

    Args:
        log: the partitions of `__transaction_state`.
        marker_writer: the partitions that transactions write to, and that administrators may end them in.
        producer_ids: where fresh producer ids come from.
        partition_count: how many partitions the topic has.
        transaction_version: the finalized level of transaction.version, as of now.
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
    ) -> None:
        self.config = config
        self._loop = loop
        self._producer_ids = producer_ids
        self.marker_writer = marker_writer
        self._partition_count = partition_count
        self._markers: TransactionMarkers | None = None

        def new_shard(partition: int, timer: CoordinatorTimer) -> TransactionCoordinatorShard:
            # A broker without transactions starts without their code.
            from barnabas.transaction.transaction_shard import TransactionCoordinatorShard

            return TransactionCoordinatorShard(
                partition,
                timer,
                config=config,
                now_ms=now_ms,
                transaction_version=transaction_version,
                on_prepared=self._end_prepared,
                on_timed_out=self._abort_timed_out,
            )

        self._runtime: CoordinatorRuntime[TransactionCoordinatorShard] = CoordinatorRuntime(
            name="transaction",
            log=log,
            serde=RecordSerde("transaction"),
            new_shard=new_shard,
            loop=loop,
            now_ms=now_ms,
            write_timeout_ms=config.request_timeout_ms,
            max_batch_bytes=config.max_batch_bytes,
        )

    def __repr__(self) -> str:
        return f"TransactionCoordinator(active={self._runtime.active_partitions()})"

    # -- elections ---------------------------------------------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that a transactional id belongs to."""
        return partition_for(transactional_id, self._partition_count())

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker leads a partition of `__transaction_state`."""
        if self._markers is not None:
            self._markers.forget(partition)
        self._runtime.on_elected(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """This broker leads the partition no more."""
        self._runtime.on_resigned(partition, epoch)
        if self._markers is not None:
            self._markers.forget(partition)

    def close(self) -> None:
        """Give up all transactional ids; their next coordinator goes on where the log ends."""
        self._runtime.close()
        if self._markers is not None:
            self._markers.close()

    def active_shards(self) -> list[TransactionCoordinatorShard]:
        """The shards that answer, for whoever counts transactions."""
        return self._runtime.active_shards()

    # -- requests ----------------------------------------------------------------------------------------------------

    def init_producer_id(self, request: InitProducerId) -> asyncio.Future[Initialized]:
        """Give a producer its id and epoch.

        Returns: a future; it fails with KafkaError: CONCURRENT_TRANSACTIONS (an open transaction is being aborted first),
            PRODUCER_FENCED, or the coordinator's own errors.
        """

        def finish(partition: int, outcome: Initialized) -> Initialized:
            if outcome.aborted is not None:
                self._end_prepared(partition, outcome.aborted)
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            return outcome

        return self._run(request.transactional_id, lambda shard, fresh: shard.init_producer_id(request, fresh), finish)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_transaction_version: int,
    ) -> asyncio.Future[None]:
        """Note that a transaction includes partitions; the future fails with KafkaError."""
        if not transactional_id:
            return self._refused(ErrorCode.INVALID_REQUEST)
        return self._run(
            transactional_id,
            lambda shard, _: shard.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, client_transaction_version
            ),
        )

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
    ) -> asyncio.Future[dict[TopicPartition, ErrorCode]]:
        """Say which partitions an open transaction includes; the future fails with KafkaError."""
        if not transactional_id:
            return self._refused(ErrorCode.INVALID_REQUEST)
        future = self._runtime.schedule_read(
            self.partition_of(transactional_id),
            lambda shard: shard.verify_partitions(transactional_id, producer_id, producer_epoch, partitions),
        )
        return self._translated(future)

    def end_transaction(self, request: EndTxn) -> asyncio.Future[Ended]:
        """Commit or abort; the answer leaves when the outcome is committed."""
        if not request.transactional_id:
            return self._refused(ErrorCode.INVALID_REQUEST)

        def finish(partition: int, outcome: Ended) -> Ended:
            if outcome.prepared is not None:
                self._end_prepared(partition, outcome.prepared)
            return outcome

        return self._run(request.transactional_id, lambda shard, fresh: shard.end(request, fresh), finish)

    def describe(self, transactional_id: str) -> asyncio.Future[TransactionMetadata]:
        """The state of one transactional id; the future fails with KafkaError TRANSACTIONAL_ID_NOT_FOUND."""
        if not transactional_id:
            return self._refused(ErrorCode.INVALID_REQUEST)

        def look(shard: TransactionCoordinatorShard) -> TransactionMetadata:
            found = shard.transactions.get(transactional_id)
            if found is None:
                raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            return found

        return self._translated(self._runtime.schedule_read(self.partition_of(transactional_id), look))

    def list_all(self) -> asyncio.Future[list[TransactionMetadata]]:
        """Every transactional id of this broker; the future fails with COORDINATOR_LOAD_IN_PROGRESS while some are read."""

        def unless_elsewhere(error: KafkaError) -> list[TransactionMetadata]:
            if error.code is ErrorCode.NOT_COORDINATOR:
                return []  # A partition that could not be read is nobody's, and hides no other.
            raise error

        reads = self._runtime.schedule_read_all(lambda shard: list(shard.transactions.values()))
        parts = [answered(self._loop, read, lambda found: found, unless_elsewhere) for read in reads]
        return gathered(self._loop, parts, lambda lists: [found for part in lists for found in part])

    # -- endings -----------------------------------------------------------------------------------------------------

    def _end_prepared(self, partition: int, metadata: TransactionMetadata) -> None:
        epoch = self._runtime.epoch(partition)
        if epoch is None:
            return  # Whoever leads the partition now has read the record.
        if self._markers is None:
            from barnabas.transaction.markers import TransactionMarkers

            self._markers = TransactionMarkers(self.marker_writer, self._loop, self._complete)
        self._markers.end(partition, epoch, metadata)

    def _complete(self, partition: int, epoch: int, metadata: TransactionMetadata) -> None:
        """Every marker is written."""
        if self._runtime.epoch(partition) != epoch:
            return
        written = self._runtime.schedule_write(partition, lambda shard: shard.complete(metadata))

        def check(done: asyncio.Future[None]) -> None:
            error = done.exception()
            if isinstance(error, KafkaError):
                logger.info("%r: its end cannot be noted yet: %s", metadata, error)
                self._loop.call_later(COMPLETE_RETRY_MS / 1000, self._complete, partition, epoch, metadata)
            elif error is not None:
                raise error

        when_done(written, check)

    def _abort_timed_out(self, metadata: TransactionMetadata) -> None:
        def finish(partition: int, outcome: Ended) -> None:
            if outcome.prepared is not None:
                logger.info("%r was open for more than %d ms and is aborted", metadata, metadata.timeout_ms)
                self._end_prepared(partition, outcome.prepared)

        aborted = self._run(
            metadata.transactional_id, lambda shard, fresh: shard.abort_timed_out(metadata, fresh), finish
        )
        # What cannot be aborted now is found again by the next look.
        when_done(aborted, lambda done: done.exception())

    # -- running -----------------------------------------------------------------------------------------------------

    def _run(
        self,
        transactional_id: str,
        operation: Callable[[TransactionCoordinatorShard, int], CoordinatorResult[Any]],
        finish: Callable[[int, Any], Any] | None = None,
    ) -> asyncio.Future[Any]:
        """Run an operation, again with a fresh producer id if it needs one, and finish what it began once that is committed."""
        response: asyncio.Future[Any] = self._loop.create_future()
        partition = self.partition_of(transactional_id)

        def run(fresh_producer_id: int) -> None:
            written = self._runtime.schedule_write(partition, lambda shard: operation(shard, fresh_producer_id))
            when_done(written, written_or_not)

        def written_or_not(done: asyncio.Future[Any]) -> None:
            try:
                outcome = done.result()
                if _needs_producer_id(outcome):
                    when_done(self._producer_ids.generate(), generated)
                    return
                result = outcome if finish is None else finish(partition, outcome)
            except KafkaError as error:
                _fail(response, _translate(error))
            else:
                if not response.done():
                    response.set_result(result)

        def generated(done: asyncio.Future[int]) -> None:
            error = done.exception()
            if error is None:
                run(done.result())
            elif isinstance(error, KafkaError):
                _fail(response, error)
            else:
                raise error

        run(NO_PRODUCER_ID)
        return response

    def _translated(self, future: asyncio.Future[R]) -> asyncio.Future[R]:
        response: asyncio.Future[R] = self._loop.create_future()

        def step(done: asyncio.Future[R]) -> None:
            error = done.exception()
            if isinstance(error, KafkaError):
                _fail(response, _translate(error))
            elif error is not None:
                raise error
            elif not response.done():
                response.set_result(done.result())

        when_done(future, step)
        return response

    def _refused(self, code: ErrorCode) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        future.set_exception(KafkaError(code))
        return future


def _needs_producer_id(outcome: object) -> bool:
    from barnabas.transaction.transaction_shard import NEEDS_PRODUCER_ID

    return outcome is NEEDS_PRODUCER_ID


def _translate(error: KafkaError) -> KafkaError:
    code = append_error(error)
    return error if code is error.code else KafkaError(code)


def _fail(response: asyncio.Future[Any], error: KafkaError) -> None:
    if not response.done():
        response.set_exception(error)
