"""The runtime's state of one partition: the shard, its timers, and the batches that are not yet committed.

    LOADING ──> ACTIVE ──> CLOSED         LOADING answers COORDINATOR_LOAD_IN_PROGRESS,
       └──────> FAILED ──>  ┘             FAILED and absent NOT_COORDINATOR

Invariants:
- an ACTIVE shard rests on committed records, and on those of `pending`;
- `pending` is in the order of the log, and its first entry is never committed;
- `open_batch` is None or the last entry of `pending`.

Source: Kafka class `CoordinatorRuntime.CoordinatorContext`.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Generic, Protocol, TypeVar

from barnabas.coordinator.pending_write import OpenBatch, PendingWrite
from barnabas.coordinator.result import CoordinatorRecord
from barnabas.coordinator.timer import CoordinatorTimer


class CoordinatorShard(Protocol):
    """One partition's state machine."""

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record, read from the log or just appended (producer_id -1: not in a transaction)."""
        ...

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Apply or drop what a producer's transaction left pending."""
        ...

    def on_loaded(self) -> None:
        """Start timers: the log has been replayed, and is committed as far as that."""
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


class ShardContext(Generic[S]):
    """One partition's shard with its timers and its uncommitted batches.

    Attributes:
        pending: the batches that are not yet committed.
        open_batch: the last of them, if it is not yet appended.
        writes_in_turn: how many operations have written in this turn of the loop.
        is_busy: the operations of this turn may share a batch.
        may_share: the log has not refused a shared batch.
    """

    __slots__ = (
        "epoch",
        "is_busy",
        "may_share",
        "next_offset",
        "open_batch",
        "partition",
        "pending",
        "shard",
        "state",
        "timer",
        "writes_in_turn",
    )

    def __init__(self, partition: int, epoch: int, shard: S, timer: CoordinatorTimer) -> None:
        self.partition = partition
        self.epoch = epoch
        self.shard = shard
        self.timer = timer
        self.state = ContextState.LOADING
        self.pending: deque[PendingWrite] = deque()
        self.open_batch: OpenBatch | None = None
        self.writes_in_turn = 0
        self.is_busy = False
        self.may_share = True
        self.next_offset = 0

    def __repr__(self) -> str:
        return f"<ShardContext {self.partition} {self.state.value} epoch={self.epoch} next={self.next_offset}>"
