"""CoordinatorRuntime: runs state machines that live in the partitions of an internal topic.

A coordinator's state for one partition is a *shard*. The runtime loads a shard when this broker is elected leader of its partition,
runs operations on it, and drops it when the broker resigns. One operation:

    operation(shard) -> CoordinatorResult(records, response)
        append the records to the partition as one batch      if the log refuses: nothing has changed, the caller gets the error
        shard.replay(record) for each                         the only place where durable state moves
        wait until the batch is committed
        give out the response

In a client's transaction the same records are in a transactional batch of its producer, and are replayed as pending; the
transaction's marker, appended by `complete_transaction`, applies or drops them.

A busy shard puts the operations of one turn of the loop into one batch, which saves a quarter of a commit's CPU:

    the turn before had SHARED_FROM writes or more     hold: replay the records at the offsets that they will have
    the turn ends, or the batch is full, or            append the open batch; if the log refuses it, its operations fail
    a record needs a batch of its own                  and the shard is read again

So a client that is alone gets its answer in the same turn. Before it opens a batch the runtime asks whether the log is writable: an
append that is refused for want of replicas must not cost a group the members that are in memory only. After that hardly anything but a
disk error can refuse the batch; if the log does, the shard's operations have batches of their own until the next election. Operations
never share a batch if they are part of a transaction, have moved the state themselves (`replay=False`) or undo something (`on_append`).

An operation without records (a read, a heartbeat) computes its answer immediately; so does an operation that rejects its request. The
client gets the answer or the error when everything before it is committed, so no client sees state that could still be lost. On one
replica the log commits a batch as it appends it, and unless the batch is shared nothing waits.

Invariants:
- responses of one shard leave in the order of their batches;
- a batch that is appended is never given up while this broker leads the partition, however long its in-sync replicas take: the shard's
  state rests on it. A client whose response takes longer than `write_timeout_ms` gets REQUEST_TIMED_OUT. The operation continues: its
  `on_append` is called with the outcome, and never with this error;
- if the leadership is lost the shard is dropped, and its waiting responses are NOT_COORDINATOR;
- if the log refuses an open batch, or a record cannot be replayed, the memory holds records that the log does not have: the runtime closes
  the context, fails its waiting responses, and reads the shard again from the log. If a shard fails while it is read, it is FAILED until
  the next election: the groups of one partition have no coordinator, the rest of the broker continues;
- a closed context does nothing more: late commits and timers find it closed and return.

Sources: Kafka classes `CoordinatorRuntime`; KIP-848 (threading model).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.coordinator.coordinator_log import (
    CoordinatorLog,
    RecordSerde,
    fields_of,
    lengths_of_batches,
    size_of,
)
from barnabas.coordinator.pending_write import OpenBatch, PendingWrite, settle
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.shard_context import ContextState, S, ShardContext
from barnabas.coordinator.shard_loader import ShardLoader
from barnabas.coordinator.timer import CoordinatorTimer, TimerOperation
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import RecordFields, build_batch
from barnabas.records.compression import Compression
from barnabas.records.record_batch import BATCH_OVERHEAD, NO_PRODUCER_ID
from barnabas.steps import Loop

__all__ = ["SHARED_FROM", "CoordinatorRuntime"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

SHARED_FROM = 4
"""Writes of a shard in one turn of the loop, from which on those of its next turn share a batch."""


class _Transaction(NamedTuple):
    """The transaction that an operation's records belong to."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard | None


_NO_TRANSACTION = _Transaction(NO_PRODUCER_ID, -1, None)


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
            new_shard: makes an empty shard from the partition's index and its timers.
            now_ms: wall time, for the records' timestamps.
            write_timeout_ms: how long a client waits for the commit before it gets REQUEST_TIMED_OUT.
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
        self._written_in_turn: list[ShardContext[S]] = []
        self._loader: ShardLoader[S] = ShardLoader(name, log, serde, loop)

    def __repr__(self) -> str:
        return f"<CoordinatorRuntime {self._name} {list(self._contexts.values())}>"

    # Elections

    def on_elected(self, partition: int, epoch: int) -> None:
        """Load the shard of a partition that this broker leads in this leader epoch; older epochs are ignored.

        A broker that still leads in a higher epoch keeps its shard: its log has not changed.
        """
        context = self._contexts.get(partition)
        if context is None:
            self._open(partition, epoch)
        elif context.state is ContextState.FAILED:
            self._close(context)
            self._open(partition, epoch)
        elif context.epoch < epoch:
            context.epoch = epoch
            context.may_share = True

    def on_resigned(self, partition: int, epoch: int | None = None) -> None:
        """Drop the shard of a partition that this broker no longer leads; with an epoch, only if the shard's is at most that."""
        context = self._contexts.get(partition)
        if context is not None and (epoch is None or context.epoch <= epoch):
            self._close(context)

    def close(self) -> None:
        """Drop every shard."""
        for context in list(self._contexts.values()):
            self._close(context)

    def active_partitions(self) -> list[int]:
        """Return the partitions whose shards answer, in order."""
        return sorted(p for p, context in self._contexts.items() if context.state is ContextState.ACTIVE)

    def active_shards(self) -> list[S]:
        """Return the shards that answer, in the order of their partitions; the caller must not change them."""
        return [self._contexts[partition].shard for partition in self.active_partitions()]

    def epoch(self, partition: int) -> int | None:
        """Return the leader epoch in which this broker coordinates a partition now, None if it does not."""
        context = self._contexts.get(partition)
        return None if context is None else context.epoch

    def state(self, partition: int) -> ContextState | None:
        """Return the state of a partition's shard, None if this broker does not have it."""
        context = self._contexts.get(partition)
        return None if context is None else context.state

    # Operations

    def schedule_write(self, partition: int, operation: Callable[[S], CoordinatorResult[R]]) -> asyncio.Future[R]:
        """Run an operation; its response is there when its records are committed.

        Returns: a future that may already be done; it fails with KafkaError (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR,
        REQUEST_TIMED_OUT, the operation's own exception, or the log's error).
        """
        return self._schedule(partition, operation, _NO_TRANSACTION)

    def schedule_transactional_write(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        operation: Callable[[S], CoordinatorResult[R]],
        guard: VerificationGuard | None = None,
    ) -> asyncio.Future[R]:
        """As `schedule_write`, with the records in a producer's transaction: pending until its marker.

        Args:
            guard: proves that the transaction includes this partition (`Partition.begin_verification`).
        """
        return self._schedule(partition, operation, _Transaction(producer_id, producer_epoch, guard))

    def complete_transaction(
        self, partition: int, producer_id: int, *, batch: bytearray, committed: bool, transaction_version: int
    ) -> asyncio.Future[None]:
        """Append the marker that ends a producer's transaction, and apply or drop the transaction's pending changes.

        Args:
            batch: the marker's control batch.

        Returns: a future that is done when the marker is committed; it fails with KafkaError as `schedule_write`.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        try:
            context = self._active(partition)
            self._close_batch(context)
            appended = self._log.append(partition, batch, transaction_version=transaction_version)
            if appended.done():
                appended.result()  # Raises the error of an append that has failed already.
        except KafkaError as error:
            future.set_exception(error)
            return future
        context.next_offset += 1
        context.shard.replay_end_transaction_marker(producer_id, committed)
        if not appended.done() or context.pending:
            self._wait_for_commit(context, PendingWrite(), appended)
        self._settle_when_committed(context, CoordinatorResult(None), future)
        return future

    def _schedule(
        self, partition: int, operation: Callable[[S], CoordinatorResult[R]], transaction: _Transaction
    ) -> asyncio.Future[R]:
        future: asyncio.Future[R] = self._loop.create_future()
        try:
            context = self._active(partition)
        except KafkaError as error:
            future.set_exception(error)
            return future
        try:
            result = operation(context.shard)
        except KafkaError as error:
            self._reject(context, error, future)
        else:
            self._write(context, result, future, transaction)
        return future

    def _reject(self, context: ShardContext[S], error: KafkaError, future: asyncio.Future[Any]) -> None:
        """Give out an operation's error when the state that it rests on is committed."""

        def fail(lost: KafkaError | None) -> None:
            if not future.done():
                future.set_exception(lost or error)

        self._settle_when_committed(context, CoordinatorResult(None, on_append=fail), future)

    def schedule_read(self, partition: int, operation: Callable[[S], R]) -> asyncio.Future[R]:
        """Compute an answer from the state; it is there when all that it rests on is committed."""
        return self.schedule_write(partition, lambda shard: CoordinatorResult(operation(shard)))

    def schedule_write_all(self, operation: Callable[[S], CoordinatorResult[R]]) -> list[asyncio.Future[R]]:
        """Run an operation on every active shard, in partition order."""
        return [self.schedule_write(partition, operation) for partition in self.active_partitions()]

    def schedule_read_all(self, operation: Callable[[S], R]) -> Iterator[asyncio.Future[R]]:
        """Read from every shard that this broker should have; the reads from shards that are loading fail.

        Each read begins when its future is taken: a read that fails immediately and is never taken would be an error without a reader.
        """
        return (self.schedule_read(partition, operation) for partition in sorted(self._contexts))

    def _active(self, partition: int) -> ShardContext[S]:
        context = self._contexts.get(partition)
        if context is None or context.state is ContextState.FAILED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if context.state is ContextState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert context.state is ContextState.ACTIVE, context
        return context

    def _write(
        self,
        context: ShardContext[S],
        result: CoordinatorResult[Any],
        future: asyncio.Future[Any] | None,
        transaction: _Transaction = _NO_TRANSACTION,
    ) -> None:
        """Append the records of a result, and settle it when they are committed or the log refuses them."""
        if result.records:
            try:
                self._append(context, result, transaction)
            except KafkaError as error:
                settle(result, future, error)
                return
        self._settle_when_committed(context, result, future)

    def _settle_when_committed(
        self, context: ShardContext[S], result: CoordinatorResult[Any], future: asyncio.Future[Any] | None
    ) -> None:
        if not context.pending:
            settle(result, future, None)
            return
        write = context.pending[-1]
        write.waiters.append((result, future))
        if future is not None and write is not context.open_batch:
            write.limit(self._loop, self._write_timeout_ms, len(write.waiters) - 1)

    def _append(self, context: ShardContext[S], result: CoordinatorResult[Any], transaction: _Transaction) -> None:
        """Append the records of a result, and move the state by them.

        Raises:
            KafkaError: the log refused a batch; the batches before it are appended.
        """
        records = result.records
        encoded = fields_of(records, self._serde, self._now_ms())
        can_share = context.is_busy and result.replay and result.on_append is None and transaction is _NO_TRANSACTION
        if can_share and self._share(context, records, encoded):
            return
        self._close_batch(context)
        if result.atomic or transaction is not _NO_TRANSACTION:
            self._append_batch(context, records, encoded, result.replay, transaction)
            return
        start = 0
        for length in lengths_of_batches(encoded, self._max_batch_bytes):
            end = start + length
            self._append_batch(context, records[start:end], encoded[start:end], result.replay, transaction)
            start = end

    def _append_batch(
        self,
        context: ShardContext[S],
        records: Sequence[CoordinatorRecord],
        encoded: list[RecordFields],
        replay: bool,
        transaction: _Transaction,
    ) -> None:
        producer_id, producer_epoch, guard = transaction
        batch = build_batch(
            encoded,
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer_id >= 0,
        )
        if len(batch) > self._max_batch_bytes:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
        appended = self._log.append(context.partition, batch, guard=guard)
        if appended.done():
            appended.result()  # Raises the error of an append that has failed already.
        if replay:
            self._replay(context, records, producer_id)
        else:
            context.next_offset += len(records)
        if not appended.done() or context.pending:
            self._wait_for_commit(context, PendingWrite(), appended)
        self._count_write(context)

    # Open batches

    def _count_write(self, context: ShardContext[S]) -> None:
        if not context.writes_in_turn:
            if not self._written_in_turn:
                self._loop.call_soon(self._end_turn)
            self._written_in_turn.append(context)
        context.writes_in_turn += 1

    def _end_turn(self) -> None:
        """Append the open batches, and decide which shards share a batch in the next turn."""
        written, self._written_in_turn = self._written_in_turn, []
        for context in written:
            context.is_busy = context.may_share and context.writes_in_turn >= SHARED_FROM
            context.writes_in_turn = 0
            try:
                self._close_batch(context)
            except KafkaError:
                pass  # The operations of the batch have it.
            except Exception:
                logger.exception("%s coordinator: partition %d", self._name, context.partition)

    def _share(
        self, context: ShardContext[S], records: Sequence[CoordinatorRecord], encoded: list[RecordFields]
    ) -> bool:
        """Put the records of an operation into the open batch, and move the state by them; return False if they need another.

        Raises:
            KafkaError: NOT_COORDINATOR if a record cannot be replayed.
        """
        size = sum(map(size_of, encoded))
        batch = context.open_batch
        if batch is None:
            if BATCH_OVERHEAD + size > self._max_batch_bytes or not self._log.is_writable(context.partition):
                return False
            batch = context.open_batch = OpenBatch()
            context.pending.append(batch)
        elif batch.size + size > self._max_batch_bytes:
            return False
        batch.records += encoded
        batch.size += size
        self._replay(context, records, NO_PRODUCER_ID)
        self._count_write(context)
        return True

    def _close_batch(self, context: ShardContext[S]) -> None:
        """Append the open batch, if there is one.

        Raises:
            KafkaError: the log refused it; its operations have failed with this error, and the shard is being read again.
        """
        batch = context.open_batch
        if batch is None:
            return
        context.open_batch = None
        try:
            appended = self._log.append(context.partition, build_batch(batch.records, compression=self._compression))
            if appended.done():
                appended.result()  # Raises the error of an append that has failed already.
        except Exception as failure:
            logger.warning(
                "%s coordinator: the log of partition %d refused a batch; reading it again",
                self._name,
                context.partition,
                exc_info=None if isinstance(failure, KafkaError) else failure,
            )
            error = failure if isinstance(failure, KafkaError) else KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            context.pending.pop()
            try:
                self._read_again(context, may_share=False)
            finally:
                batch.finish(error)
            raise error from None
        self._wait_for_commit(context, batch, appended)

    # Replay and commit

    def _replay(self, context: ShardContext[S], records: Sequence[CoordinatorRecord], producer_id: int) -> None:
        """Move the state by records.

        Raises:
            KafkaError: NOT_COORDINATOR if a record cannot be replayed; the shard is being read again.
        """
        for record in records:
            try:
                context.shard.replay(record, context.next_offset, producer_id)
            except Exception:
                logger.exception(
                    "%s coordinator: partition %d: cannot replay %s", self._name, context.partition, record
                )
                self._read_again(context)
                raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
            context.next_offset += 1

    def _wait_for_commit(self, context: ShardContext[S], write: PendingWrite, appended: asyncio.Future[int]) -> None:
        if type(write) is OpenBatch:
            write.limit(self._loop, self._write_timeout_ms)
        else:
            context.pending.append(write)
        # Also if it is done: the caller has an operation's records in hand, and nothing may run between it and their append.
        appended.add_done_callback(lambda future: self._on_commit(context, write, future))

    def _on_commit(self, context: ShardContext[S], write: PendingWrite, appended: asyncio.Future[int]) -> None:
        if context.state is ContextState.CLOSED:
            if not appended.cancelled():
                appended.exception()  # Retrieved: its writers have been answered already.
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

    def _read_again(self, context: ShardContext[S], *, may_share: bool = True) -> None:
        """Drop a shard whose memory may differ from its log, and load it again."""
        self._close(context)
        self._open(context.partition, context.epoch)
        self._contexts[context.partition].may_share = context.may_share and may_share

    # Timers

    def _run_timer(self, context: ShardContext[S], key: str, operation: TimerOperation) -> None:
        assert self._contexts.get(context.partition) is context, f"timer {key} outlived its shard"
        result = operation()
        if result.on_append is None:
            result = result._replace(on_append=partial(self._warn_not_written, key))
        self._write(context, result, None)

    def _warn_not_written(self, key: str, error: KafkaError | None) -> None:
        # A shard that has moved has its timers with the next coordinator.
        if error is not None and error.code is not ErrorCode.NOT_COORDINATOR:
            logger.warning("%s coordinator: timer %s could not write: %s", self._name, key, error)

    # Loading and closing

    def _open(self, partition: int, epoch: int) -> None:
        timer = CoordinatorTimer(self._loop, lambda key, operation: self._run_timer(context, key, operation))
        context = ShardContext(partition, epoch, self._new_shard(partition, timer), timer)
        self._contexts[partition] = context
        self._loader.load(context)

    def _close(self, context: ShardContext[S]) -> None:
        was_active = context.state is ContextState.ACTIVE
        context.state = ContextState.CLOSED
        context.timer.cancel_all()
        del self._contexts[context.partition]
        context.open_batch = None
        pending, context.pending = context.pending, deque()
        for write in pending:
            write.finish(KafkaError(ErrorCode.NOT_COORDINATOR))
        if was_active:
            context.shard.on_unloaded()
        context.timer.cancel_all()
