"""The replicas of this broker that other brokers have too: those it leads keep their ISR, those it follows are fetched.

    metadata delta ──► changed ─┬─► leads    ──► ISR changes ──► AlterPartitionManager
                                └─► follows  ──► ReplicaFetcherManager
    a follower's fetch ──► try_to_expand ──────────▲
    a timer ──► every partition that it leads ─────┘

- A follower that lags for replica.lag.time.max.ms leaves the ISR. A timer looks for such followers twice in this time, in slices.
- A follower joins when it has fetched all that is committed. Its fetch may come too early: its broker is still fenced in the metadata
  of the leader, or another change is open. It may then fetch nothing new for long, and its fetch session does not name the partition. So
  the leader tries again when the metadata of the partition or of brokers changes, and on the timer. (In Kafka each fetch tries for all
  partitions of its session.)

A broker without such replicas neither makes this object nor imports this module and those that it needs.

Source: Kafka's `ReplicaManager.maybeShrinkIsr`, `Partition.maybeExpandIsr`, `Partition.maybeShrinkIsr`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.replication.alter_partition_manager import AlterPartitionManager
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher_manager import ReplicaFetcherManager
from barnabas.steps import in_background, sleep
from barnabas.turns import REPLICA, pace

if TYPE_CHECKING:
    from barnabas.replication.partition_state import PendingIsrChange

__all__ = ["ReplicatedPartitions"]

logger = logging.getLogger(__name__)


class ReplicatedPartitions:
    """Keeps replicas alike.

    Args:
        lag_time_max_ms: replica.lag.time.max.ms.

    Attributes:
        fetchers: the partitions that this broker follows.
        isr_changes: proposes changes of the ISR to the controller.
    """

    def __init__(
        self,
        fetchers: ReplicaFetcherManager,
        isr_changes: AlterPartitionManager,
        lag_time_max_ms: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.fetchers = fetchers
        self.isr_changes = isr_changes
        self._lag_time_max_ms = lag_time_max_ms
        self._loop = loop
        self._led: dict[Partition, None] = {}
        self._looking: asyncio.Future[None] | None = None
        self._looks_again = False
        self._ticking = in_background(self._tick(), loop)

    def __repr__(self) -> str:
        return f"<ReplicatedPartitions led={len(self._led)} fetchers={self.fetchers!r}>"

    # Metadata

    def changed(self, partition: Partition) -> None:
        """Follow or lead a partition as its registration now says."""
        if partition.followers is not None:
            self.fetchers.stop(partition)
            self._led[partition] = None
            self._expand(partition)
        else:
            self._led.pop(partition, None)
            if partition.is_leader:
                self.fetchers.stop(partition)
            else:
                self.fetchers.follow(partition)

    def gone(self, partition: Partition) -> None:
        """Neither follow nor lead a partition: its replica has left this broker."""
        self._led.pop(partition, None)
        self.fetchers.stop(partition)

    def delta_applied(self, *, brokers_changed: bool) -> None:
        """End what a delta has left without work; a broker that is in service now may join ISRs."""
        self.fetchers.close_idle()
        if brokers_changed:
            self._look_at_all()

    def close(self) -> None:
        """Fetch nothing and propose nothing any more."""
        self._ticking.cancel()
        if self._looking is not None:
            self._looking.cancel()
        self.fetchers.close()
        self.isr_changes.close()

    # ISR

    def try_to_expand(self, partition: Partition, replica_id: int) -> None:
        """Propose that a follower joins the ISR, if it may."""
        change = partition.prepare_expand_isr(replica_id)
        if change is not None:
            self._propose(partition, change)

    def _expand(self, partition: Partition) -> None:
        """Propose that a follower joins; only one of several, because a partition has one change at a time."""
        for replica_id in partition.outside_isr():
            self.try_to_expand(partition, replica_id)

    def _shrink(self, partition: Partition) -> None:
        change = partition.prepare_shrink_isr()
        if change is not None:
            self._propose(partition, change)

    def _propose(self, partition: Partition, change: PendingIsrChange) -> None:
        # A change that is made is in the log of `metadata.partition_change_log`, with those of other partitions in one line.
        logger.debug(
            "%s: proposing the ISR %s instead of %s",
            partition.name,
            [broker_id for broker_id, _ in change.sent.isr],
            list(partition.isr),
        )
        self.isr_changes.submit(partition, change)

    async def _tick(self) -> None:
        while True:
            await sleep(self._lag_time_max_ms / 2000, self._loop)
            self._look_at_all()

    def _look_at_all(self) -> None:
        """Look at each partition that this broker leads, in the background; once more if that is under way."""
        self._looks_again = True
        if self._looking is None or self._looking.done():
            self._looking = in_background(self._look(), self._loop)

    async def _look(self) -> None:
        while self._looks_again:
            self._looks_again = False
            for partition in list(self._led):
                await pace(REPLICA)
                if partition in self._led:
                    self._shrink(partition)
                    self._expand(partition)
