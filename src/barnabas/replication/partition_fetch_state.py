"""How far one fetched partition is, at the follower.

    TRUNCATING ──► FETCHING ──► OUT_OF_RANGE ──► FETCHING
                   the log is     the leader does not have the log's end; its range must be asked for
                   ready

- A state belongs to one leader epoch. A newer epoch makes a new state, so an answer to a request of the old epoch finds no state.
- The fetch offset and the last fetched epoch are not here. They are the log's end and its latest epoch, also after an answer without
  records (KAFKA-15510).
- After an error a partition is delayed: the next requests leave it out, and then it continues where it was.

Source: Kafka's `PartitionFetchState`, `ReplicaState`.
"""

from __future__ import annotations

from enum import Enum

from barnabas.replication.partition import Partition

__all__ = ["FetchStage", "PartitionFetchState", "PartitionKey"]

PartitionKey = tuple[bytes, int]
"""Topic id and index."""


class FetchStage(Enum):
    """The next step of a fetched partition."""

    TRUNCATING = "truncating"
    OUT_OF_RANGE = "out of range"
    FETCHING = "fetching"


class PartitionFetchState:
    """One fetched partition, in one leader epoch.

    Attributes:
        delayed_until_ms: monotonic; None if it is not delayed.
        lag: the records between the log's end and the leader's high watermark; None before the first answer.
        refusals: how often in a row the leader has said that it does not lead.
    """

    __slots__ = ("delayed_until_ms", "key", "lag", "leader_epoch", "partition", "refusals", "stage")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic.topic_id, partition.index)
        self.leader_epoch = partition.leader_epoch
        self.stage = FetchStage.TRUNCATING
        self.delayed_until_ms: int | None = None
        self.lag: int | None = None
        self.refusals = 0

    def __repr__(self) -> str:
        return (
            f"<PartitionFetchState partition={self.name} epoch={self.leader_epoch} stage={self.stage.value!r}"
            f" delayed={self.delayed_until_ms is not None}>"
        )

    @property
    def name(self) -> str:
        return f"{self.partition.topic.name}-{self.partition.index}"

    def is_due(self, now_ms: int) -> bool:
        """Return whether its delay has ended."""
        return self.delayed_until_ms is not None and self.delayed_until_ms <= now_ms

    @property
    def is_fetching(self) -> bool:
        """Whether the next request may name it."""
        return self.stage is FetchStage.FETCHING and self.delayed_until_ms is None

    @property
    def is_in_sync(self) -> bool:
        """Whether the last answer showed that nothing is missing below the leader's high watermark (KIP-73)."""
        return self.lag is not None and self.lag <= 0

    @property
    def awaits_sync(self) -> bool:
        """Whether the log must be synced before its end is reported."""
        return self.partition.awaits_sync

    @property
    def is_current(self) -> bool:
        """Whether this broker still follows in this leader epoch; metadata may be ahead of the fetcher."""
        partition = self.partition
        return not partition.is_deleted and not partition.is_leader and partition.leader_epoch == self.leader_epoch
