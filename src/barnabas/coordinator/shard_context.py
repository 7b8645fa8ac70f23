"""What the runtime keeps for one partition: the shard, its timers, and the batches that are not yet committed.

    LOADING ──> ACTIVE ──> CLOSED         LOADING answers COORDINATOR_LOAD_IN_PROGRESS,
       └──────> FAILED ──>  ┘             FAILED and absent NOT_COORDINATOR

Invariant: `pending` is in the order of the log, and its first entry is never committed.

Source: Kafka class `CoordinatorRuntime.CoordinatorContext`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class CoordinatorShard(Protocol):
    """One partition's state machine."""

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record, read from the log or just appended (producer_id -1: not in a transaction)."""
        ...

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Apply or drop what a producer's transaction left pending."""
        ...

    def on_loaded(self) -> None:
        """Start timers: the log has been replayed."""
        ...

    def on_unloaded(self) -> None:
        """Answer the clients that wait in the state: it is about to be dropped."""
        ...


S = TypeVar("S", bound=CoordinatorShard)


class ContextState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


Waiter = tuple[CoordinatorResult[Any], asyncio.Future[Any] | None]
"""The result of an operation, and the future of its response (None for a timer's operation)."""


def settle(result: CoordinatorResult[Any], future: asyncio.Future[Any] | None, error: KafkaError | None) -> None:
    """Report the outcome of an operation, and give out its response or the error."""
    failure: Exception | None = error
    if result.on_append is not None:
        try:
            result.on_append(error)
        except Exception as bug:
            logger.exception("%r failed", result.on_append)
            failure = bug
    if future is None or future.done():
        return
    if failure is None:
        future.set_result(result.response)
    else:
        future.set_exception(failure)


class PendingWrite:
    """A batch that is not yet committed, and the operations that wait for it."""

    __slots__ = ("committed", "timeout", "waiters")

    def __init__(self) -> None:
        self.committed = False
        self.waiters: list[Waiter] = []
        self.timeout: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<PendingWrite committed={self.committed} waiters={len(self.waiters)}>"

    def finish(self, error: KafkaError | None) -> None:
        """Settle every operation that waits."""
        if self.timeout is not None:
            self.timeout.cancel()
        waiters, self.waiters = self.waiters, []
        for result, future in waiters:
            settle(result, future, error)

    def expire(self) -> None:
        """Answer the clients with REQUEST_TIMED_OUT; the operations go on waiting for the outcome."""
        for _, future in self.waiters:
            if future is not None and not future.done():
                future.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))


class ShardContext(Generic[S]):
    """One partition's shard with its timers and its uncommitted batches."""

    __slots__ = ("epoch", "next_offset", "partition", "pending", "shard", "source", "state", "timer")

    def __init__(self, partition: int, epoch: int, shard: S, timer: CoordinatorTimer) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.timer = timer
        self.state = ContextState.LOADING
        self.pending: deque[PendingWrite] = deque()
        self.next_offset = 0
        self.source: Iterator[None] | None = None

    def __repr__(self) -> str:
        return f"<ShardContext {self.partition} {self.state.value} epoch={self.epoch} next={self.next_offset}>"
