"""CoordinatorRuntime: runs state machines that live in the partitions of an internal topic (control plane).

A coordinator's state for one partition is a *shard*. The runtime loads shards when this broker is elected leader of their
partition, runs operations on them, and forgets them on resignation. One operation:

    operation(shard) -> CoordinatorResult(records, response)
        records appended to the partition as one batch        refused: nothing has changed, the caller gets the error
        shard.replay(record) for each                         the only place where durable state moves
        wait until the batch is committed
        the response is given out

In a transaction of a client the same records lie in a transactional batch of its producer, and are replayed as pending; the
transaction's marker, appended by `complete_transaction`, settles them.

An operation without records (a read, a heartbeat) computes its answer at once, and gives it out when everything appended
before it is committed, so nobody ever sees state that could still be lost. On one replica a batch is committed as it is appended
and nothing waits.

Invariants:
- responses of one shard leave in the order of their batches;
- when a batch that was appended turns out not to be committed, the memory holds records that the log may not: the context is closed,
  its waiting responses fail, and the shard is read again from the log; the same when a record in the log cannot be replayed, and
  a shard that fails while it is read is FAILED until the next election: one partition's groups without a coordinator, not a broker less;
- a closed context does nothing any more: late commits and timers find their context closed and return.

Limits: batches are written one per operation (Kafka can linger to put several operations in one).

Sources: Kafka classes `CoordinatorRuntime`; KIP-848 (threading model).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from barnabas.coordinator.coordinator_log import CoordinatorLog, RecordSerde, batches_of
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.shard_context import ContextState, Finish, PendingWrite, S, ShardContext
from barnabas.coordinator.shard_loader import NO_PRODUCER_ID, ShardLoader
from barnabas.coordinator.timer import CallLater, CoordinatorTimer, TimerOperation
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.compression import Compression

logger = logging.getLogger(__name__)

R = TypeVar("R")


class _InTransaction(NamedTuple):
    """The transaction that an operation's records belong to."""

    producer_id: int
    producer_epoch: int
    guard: Any


class Loop(Protocol):
    """The part of the event loop that the runtime uses."""

    @property
    def call_later(self) -> CallLater: ...

    def call_soon(self, callback: Callable[..., object], /, *args: Any) -> object: ...

    def create_future(self) -> asyncio.Future[Any]: ...


class CoordinatorRuntime(Generic[S]):
    """Runs the shards of one coordinator on this broker."""

    def __init__(
        self,
        *,
        name: str,
        log: CoordinatorLog,
        serde: RecordSerde,
        new_shard: Callable[[int, CoordinatorTimer], S],
        loop: Loop,
        now_ms: Callable[[], int],
        write_timeout_ms: int,
        max_batch_bytes: int = 1048588,
        compression: Compression = Compression.NONE,
    ) -> None:
        """Make a runtime without shards.

        Args:
            name: for log lines, such as "group".
            new_shard: makes an empty shard for a partition, given its timers.
            now_ms: wall time, for the records' timestamps.
            write_timeout_ms: how long a response waits for its commit (REQUEST_TIMED_OUT after).
            max_batch_bytes: the internal topic's max.message.bytes.
        """
        self._name = name
        self._log = log
        self._serde = serde
        self._new_shard = new_shard
        self._loop = loop
        self._now_ms = now_ms
        self._write_timeout_ms = write_timeout_ms
        self._max_batch_bytes = max_batch_bytes
        self._compression = compression
        self._contexts: dict[int, ShardContext[S]] = {}
        self._loader: ShardLoader[S] = ShardLoader(name, log, serde, loop.call_soon)

    def __repr__(self) -> str:
        return f"CoordinatorRuntime({self._name} {list(self._contexts.values())})"

    # -- elections ---------------------------------------------------------------------------------------------------

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker leads the partition in this leader epoch: load its shard (older epochs are ignored)."""
        context = self._contexts.get(partition)
        if context is not None:
            if context.epoch >= epoch and context.state is not ContextState.FAILED:
                return
            self._close(context)
        self._open(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """This broker leads the partition no more; with an epoch, only if the shard is of an older or that epoch."""
        context = self._contexts.get(partition)
        if context is not None and (epoch is None or context.epoch <= epoch):
            self._close(context)

    def close(self) -> None:
        """Give up every shard."""
        for context in list(self._contexts.values()):
            self._close(context)

    def active_partitions(self) -> list[int]:
        """The partitions whose shards answer, in order."""
        return sorted(p for p, context in self._contexts.items() if context.state is ContextState.ACTIVE)

    def active_shards(self) -> list[S]:
        """The shards that answer, in the order of their partitions: to look at, not to change."""
        return [self._contexts[partition].shard for partition in self.active_partitions()]

    def epoch(self, partition: int) -> int | None:
        """The leader epoch in which this broker coordinates a partition; None when it does not."""
        context = self._contexts.get(partition)
        return None if context is None else context.epoch

    def state(self, partition: int) -> ContextState | None:
        """How far the shard of a partition is; None when this broker does not have it."""
        context = self._contexts.get(partition)
        return None if context is None else context.state

    # -- operations --------------------------------------------------------------------------------------------------

    def schedule_write(self, partition: int, operation: Callable[[S], CoordinatorResult[R]]) -> asyncio.Future[R]:
        """Run an operation and give its response when its records are committed.

        Returns: a future that may already be done; it fails with KafkaError (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR,
        what the operation raised, or what the log answered).
        """
        return self._schedule(partition, operation, None)

    def schedule_transactional_write(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        operation: Callable[[S], CoordinatorResult[R]],
        guard: Any = None,
    ) -> asyncio.Future[R]:
        """As `schedule_write`, with the records in a producer's transaction: pending until its marker.

        Args:
            guard: proves that the transaction includes this partition (`Partition.begin_verification`).
        """
        return self._schedule(partition, operation, _InTransaction(producer_id, producer_epoch, guard))

    def complete_transaction(
        self, partition: int, producer_id: int, *, batch: bytearray, committed: bool, transaction_version: int
    ) -> asyncio.Future[None]:
        """Append the marker that ends a producer's transaction, and settle what is pending.

        Args:
            batch: the marker's control batch.

        Returns: a future that is done when the marker is committed; it fails with KafkaError as `schedule_write`.
        """
        future: asyncio.Future[None] = self._loop.create_future()

        def finish(error: KafkaError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        try:
            context = self._active(partition)
            appended = self._log.append(partition, batch, transaction_version=transaction_version)
            if appended.done():
                appended.result()  # Raises what refused it.
        except KafkaError as error:
            finish(error)
            return future
        context.next_offset += 1
        context.shard.replay_end_transaction_marker(producer_id, committed)
        if not appended.done() or context.pending:
            self._wait_for_commit(context, appended)
        self._when_committed(context, finish)
        return future

    def _schedule(
        self,
        partition: int,
        operation: Callable[[S], CoordinatorResult[R]],
        transaction: _InTransaction | None,
    ) -> asyncio.Future[R]:
        future: asyncio.Future[R] = self._loop.create_future()
        try:
            context = self._active(partition)
            result = operation(context.shard)
        except KafkaError as error:
            future.set_exception(error)
            return future

        def finish(error: KafkaError | None) -> None:
            if result.on_append is not None:
                result.on_append(error)
            if future.done():
                return
            if error is None:
                future.set_result(result.response)
            else:
                future.set_exception(error)

        self._append(context, result, finish, transaction)
        return future

    def schedule_read(self, partition: int, operation: Callable[[S], R]) -> asyncio.Future[R]:
        """Compute an answer from the state, and give it when all that the answer rests on is committed."""
        return self.schedule_write(partition, lambda shard: CoordinatorResult(operation(shard)))

    def schedule_write_all(self, operation: Callable[[S], CoordinatorResult[R]]) -> list[asyncio.Future[R]]:
        """Run an operation on every active shard, in partition order."""
        return [self.schedule_write(partition, operation) for partition in self.active_partitions()]

    def schedule_read_all(self, operation: Callable[[S], R]) -> list[asyncio.Future[R]]:
        """Read from every shard that this broker should have, also from those still loading (they fail)."""
        return [self.schedule_read(partition, operation) for partition in sorted(self._contexts)]

    def _active(self, partition: int) -> ShardContext[S]:
        context = self._contexts.get(partition)
        if context is None or context.state is ContextState.FAILED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if context.state is ContextState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert context.state is ContextState.ACTIVE, context
        return context

    def _append(
        self,
        context: ShardContext[S],
        result: CoordinatorResult[Any],
        finish: Finish,
        transaction: _InTransaction | None = None,
    ) -> None:
        """Append, replay, and call `finish` once the last batch is committed or something is refused."""
        if result.records:
            try:
                if transaction is None:
                    self._append_batches(context, result)
                else:
                    self._append_in_transaction(context, result, transaction)
            except KafkaError as error:
                finish(error)
                return
            if context.state is ContextState.CLOSED:  # a batch was refused after its append
                finish(KafkaError(ErrorCode.NOT_COORDINATOR))
                return
        self._when_committed(context, finish)

    def _when_committed(self, context: ShardContext[S], finish: Finish) -> None:
        if context.pending:
            context.pending[-1].waiters.append(finish)
        else:
            finish(None)

    def _append_in_transaction(
        self, context: ShardContext[S], result: CoordinatorResult[Any], transaction: _InTransaction
    ) -> None:
        for records, batch in batches_of(
            result.records,
            self._serde,
            now_ms=self._now_ms(),
            max_batch_bytes=self._max_batch_bytes,
            atomic=True,
            compression=self._compression,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
        ):
            if len(batch) > self._max_batch_bytes:
                raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
            self._take(
                context,
                records,
                self._log.append(context.partition, batch, guard=transaction.guard),
                replay=result.replay,
                producer_id=transaction.producer_id,
            )

    def _append_batches(self, context: ShardContext[S], result: CoordinatorResult[Any]) -> None:
        for records, batch in batches_of(
            result.records,
            self._serde,
            now_ms=self._now_ms(),
            max_batch_bytes=self._max_batch_bytes,
            atomic=result.atomic,
            compression=self._compression,
        ):
            if len(batch) > self._max_batch_bytes:
                raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
            self._take(
                context,
                records,
                self._log.append(context.partition, batch),
                replay=result.replay,
                producer_id=NO_PRODUCER_ID,
            )

    def _take(
        self,
        context: ShardContext[S],
        records: Sequence[CoordinatorRecord],
        appended: asyncio.Future[int],
        *,
        replay: bool,
        producer_id: int,
    ) -> None:
        """Move the state by a batch that is in the log, and wait for its commit if that is still to come."""
        if appended.done():
            appended.result()  # Raises what refused it.
        for record in records:
            if replay:
                try:
                    context.shard.replay(record, context.next_offset, producer_id)
                except Exception:
                    logger.exception(
                        "%s coordinator: partition %d: cannot replay %s", self._name, context.partition, record
                    )
                    self._read_again(context)
                    raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
            context.next_offset += 1
        if not appended.done() or context.pending:
            self._wait_for_commit(context, appended)

    def _wait_for_commit(self, context: ShardContext[S], appended: asyncio.Future[int]) -> None:
        write = PendingWrite()
        context.pending.append(write)
        write.timeout = self._loop.call_later(
            self._write_timeout_ms / 1000, write.finish, KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        )
        appended.add_done_callback(lambda future: self._on_commit(context, write, future))

    def _on_commit(self, context: ShardContext[S], write: PendingWrite, appended: asyncio.Future[int]) -> None:
        if context.state is ContextState.CLOSED:
            if not appended.cancelled():
                appended.exception()  # Seen: its writers have been answered already.
            return
        if appended.cancelled() or appended.exception() is not None:
            logger.warning(
                "%s coordinator: an append to partition %d is lost; reading it again", self._name, context.partition
            )
            self._read_again(context)
            return
        write.committed = True
        while context.pending and context.pending[0].committed:
            context.pending.popleft().finish(None)

    def _read_again(self, context: ShardContext[S]) -> None:
        """Forget a shard whose memory is not what its log says, and load it anew."""
        self._close(context)
        self._open(context.partition, context.epoch)

    # -- timers ------------------------------------------------------------------------------------------------------

    def _run_timer(self, partition: int, epoch: int, key: str, operation: TimerOperation) -> None:
        context = self._contexts.get(partition)
        assert context is not None, f"timer {key} outlived its shard"
        assert context.epoch == epoch, f"timer {key} of epoch {epoch} fires in {context!r}"
        result = operation()

        def finish(error: KafkaError | None) -> None:
            if result.on_append is not None:
                result.on_append(error)
            elif error is not None:
                logger.warning("%s coordinator: timer %s could not write: %s", self._name, key, error)

        self._append(context, result, finish)

    # -- loading and closing -----------------------------------------------------------------------------------------

    def _open(self, partition: int, epoch: int) -> None:
        timer = CoordinatorTimer(
            self._loop.call_later, lambda key, operation: self._run_timer(partition, epoch, key, operation)
        )
        context = ShardContext(partition, epoch, self._new_shard(partition, timer), timer)
        self._contexts[partition] = context
        self._loader.load(context)

    def _close(self, context: ShardContext[S]) -> None:
        was_active = context.state is ContextState.ACTIVE
        context.state = ContextState.CLOSED
        context.source = None
        context.timer.cancel_all()
        del self._contexts[context.partition]
        pending, context.pending = context.pending, deque()
        for write in pending:
            write.finish(KafkaError(ErrorCode.NOT_COORDINATOR))
        if was_active:
            context.shard.on_unloaded()
        context.timer.cancel_all()
