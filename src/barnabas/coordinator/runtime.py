"""CoordinatorRuntime: runs state machines that live in the partitions of an internal topic (control plane).

A coordinator's state for one partition is a *shard*. The runtime loads shards when this broker is elected leader of their
partition, runs operations on them, and forgets them on resignation. One operation:

    operation(shard) -> CoordinatorResult(records, response)
        records appended to the partition as one batch        refused: nothing has changed, the caller gets the error
        shard.replay(record) for each                         the only place where durable state moves
        wait until the batch is committed
        the response is given out

An operation without records (a read, a heartbeat) computes its answer at once, and gives it out when everything appended
before it is committed, so nobody ever sees state that could still be lost. On one replica a batch is committed as it is appended
and nothing waits.

States of a context:

    LOADING ──> ACTIVE ──> CLOSED         LOADING answers COORDINATOR_LOAD_IN_PROGRESS,
       └──────> FAILED ──>  ┘             FAILED and absent NOT_COORDINATOR

Invariants:
- responses of one shard leave in the order of their batches;
- when a batch that was appended turns out not to be committed, the memory holds records that the log may not: the context is closed,
  its waiting responses fail, and the shard is read again from the log;
- loading runs a bounded number of records per turn of the loop, so that a large partition does not stall the others;
- a closed context does nothing any more: late commits and timers find their context closed and return.

Limits: batches are written one per operation (Kafka can linger to put several operations in one).

Sources: Kafka classes `CoordinatorRuntime`, `CoordinatorLoaderImpl`; KIP-848 (threading model).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from barnabas.coordinator.coordinator_log import Buffer, CoordinatorLog, RecordSerde, UnknownRecordType, batches_of
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.timer import CallLater, CoordinatorTimer, TimerOperation
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.records.compression import Compression
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches

logger = logging.getLogger(__name__)

R = TypeVar("R")

NO_PRODUCER_ID = -1
LOAD_RECORDS_PER_TURN = 500


class CoordinatorShard(Protocol):
    """One partition's state machine."""

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record, from the log or just appended (producer_id -1: not in a transaction)."""
        ...

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Settle what a producer's transaction left pending."""
        ...

    def on_loaded(self) -> None:
        """The log has been replayed: start timers."""
        ...

    def on_unloaded(self) -> None:
        """The state is given up: answer everyone who waits inside it."""
        ...


S = TypeVar("S", bound=CoordinatorShard)


class Loop(Protocol):
    """The part of the event loop that the runtime uses."""

    @property
    def call_later(self) -> CallLater: ...

    def call_soon(self, callback: Callable[..., object], /, *args: Any) -> object: ...

    def create_future(self) -> asyncio.Future[Any]: ...


class ContextState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


Finish = Callable[[KafkaError | None], None]


class _PendingWrite:
    """A batch that is appended and not yet committed, and who waits for it."""

    __slots__ = ("committed", "timeout", "waiters")

    def __init__(self) -> None:
        self.committed = False
        self.waiters: list[Finish] = []
        self.timeout: Any = None

    def finish(self, error: KafkaError | None) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter(error)


class _Context(Generic[S]):
    """One partition's shard with its timers and its uncommitted batches."""

    __slots__ = ("epoch", "next_offset", "partition", "pending", "shard", "source", "state", "timer")

    def __init__(self, partition: int, epoch: int, shard: S, timer: CoordinatorTimer) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.timer = timer
        self.state = ContextState.LOADING
        self.pending: deque[_PendingWrite] = deque()
        self.next_offset = 0
        self.source: Iterator[None] | None = None

    def __repr__(self) -> str:
        return f"Context({self.partition} {self.state.value} epoch={self.epoch} next={self.next_offset})"


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
        self._contexts: dict[int, _Context[S]] = {}
        self._loading: deque[_Context[S]] = deque()
        self._load_scheduled = False

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

        self._append(context, result, finish)
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

    def _active(self, partition: int) -> _Context[S]:
        context = self._contexts.get(partition)
        if context is None or context.state is ContextState.FAILED:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if context.state is ContextState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert context.state is ContextState.ACTIVE, context
        return context

    def _append(self, context: _Context[S], result: CoordinatorResult[Any], finish: Finish) -> None:
        """Append, replay, and call `finish` once the last batch is committed or something is refused."""
        if result.records:
            try:
                self._append_batches(context, result)
            except KafkaError as error:
                finish(error)
                return
            if context.state is ContextState.CLOSED:  # a batch was refused after its append
                finish(KafkaError(ErrorCode.NOT_COORDINATOR))
                return
        if context.pending:
            context.pending[-1].waiters.append(finish)
        else:
            finish(None)

    def _append_batches(self, context: _Context[S], result: CoordinatorResult[Any]) -> None:
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
            appended = self._log.append(context.partition, batch)
            if appended.done():
                appended.result()  # Raises what refused it.
            for record in records:
                if result.replay:
                    context.shard.replay(record, context.next_offset, NO_PRODUCER_ID)
                context.next_offset += 1
            if not appended.done() or context.pending:
                self._wait_for_commit(context, appended)

    def _wait_for_commit(self, context: _Context[S], appended: asyncio.Future[int]) -> None:
        write = _PendingWrite()
        context.pending.append(write)
        write.timeout = self._loop.call_later(
            self._write_timeout_ms / 1000, write.finish, KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        )
        appended.add_done_callback(lambda future: self._on_commit(context, write, future))

    def _on_commit(self, context: _Context[S], write: _PendingWrite, appended: asyncio.Future[int]) -> None:
        if context.state is ContextState.CLOSED:
            if not appended.cancelled():
                appended.exception()  # Seen: its writers have been answered already.
            return
        if appended.cancelled() or appended.exception() is not None:
            logger.warning(
                "%s coordinator: an append to partition %d is lost; reading it again", self._name, context.partition
            )
            self._close(context)
            self._open(context.partition, context.epoch)
            return
        write.committed = True
        while context.pending and context.pending[0].committed:
            context.pending.popleft().finish(None)

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
        context = _Context(partition, epoch, self._new_shard(partition, timer), timer)
        self._contexts[partition] = context
        self._loading.append(context)
        if not self._load_scheduled:
            self._load_scheduled = True
            self._loop.call_soon(self._load_some)

    def _load_some(self) -> None:
        """Replay up to a bounded number of records, then let the loop turn."""
        self._load_scheduled = False
        budget = LOAD_RECORDS_PER_TURN
        while self._loading and budget > 0:
            context = self._loading[0]
            if context.state is ContextState.LOADING:
                budget -= self._load_step(context, budget)
            if context.state is not ContextState.LOADING:
                self._loading.popleft()
        if self._loading:
            self._load_scheduled = True
            self._loop.call_soon(self._load_some)

    def _load_step(self, context: _Context[S], budget: int) -> int:
        """Replay at most `budget` records of a shard; returns the number replayed (at least 1, for the opening itself)."""
        used = 1
        try:
            if context.source is None:
                context.source = self._replay_log(context)
            for _ in context.source:
                used += 1
                if used >= budget:
                    return used
        except (KafkaError, MalformedMessage) as error:
            logger.error("%s coordinator: partition %d cannot be loaded: %s", self._name, context.partition, error)
            context.state = ContextState.FAILED
            context.timer.cancel_all()
            return used
        context.source = None
        context.state = ContextState.ACTIVE
        context.shard.on_loaded()
        return used

    def _replay_log(self, context: _Context[S]) -> Iterator[None]:
        """Replay the partition record by record, yielding after each."""
        for buffer in self._log.read(context.partition):
            yield from self._replay_buffer(context, buffer)

    def _replay_buffer(self, context: _Context[S], buffer: Buffer) -> Iterator[None]:
        view = memoryview(buffer)
        for position, header in iter_batches(view):
            batch = view[position : position + header.size]
            if header.is_control:
                for marker in iter_records(batch):
                    kind = control_type(marker.key)
                    if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                        committed = kind is ControlRecordType.COMMIT
                        context.shard.replay_end_transaction_marker(header.producer_id, committed)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                for record in iter_records(batch):
                    if record.key is not None:
                        self._replay_one(context, record.key, record.value, record.offset, producer_id)
                    yield
            context.next_offset = header.next_offset

    def _replay_one(
        self, context: _Context[S], key: Buffer, value: Buffer | None, offset: int, producer_id: int
    ) -> None:
        try:
            record = self._serde.decode(key, value)
        except UnknownRecordType as unknown:
            logger.info(
                "%s coordinator: partition %d offset %d skipped: %s", self._name, context.partition, offset, unknown
            )
            return
        context.shard.replay(record, offset, producer_id)

    def _close(self, context: _Context[S]) -> None:
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
