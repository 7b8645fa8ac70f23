"""What the runtime keeps for one partition: the shard, its timers, and its batches on their way (control plane).

    LOADING ──> ACTIVE ──> CLOSED         LOADING answers COORDINATOR_LOAD_IN_PROGRESS,
       └──────> FAILED ──>  ┘             FAILED and absent NOT_COORDINATOR

Invariant: `pending` is in the order of the appends, and its first entry is never committed.

Source: Kafka class `CoordinatorRuntime.CoordinatorContext`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.protocol.errors import KafkaError


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


class ContextState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


Finish = Callable[[KafkaError | None], None]


class PendingWrite:
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
        return f"ShardContext({self.partition} {self.state.value} epoch={self.epoch} next={self.next_offset})"
