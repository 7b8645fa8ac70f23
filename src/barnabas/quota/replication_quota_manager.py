"""The limit of replication on one side of a broker: as a leader, or as a follower.

    leader.replication.throttled.rate       bytes a second that this broker sends to followers ┐ of the partitions in
    follower.replication.throttled.rate     bytes a second that this broker fetches            ┘ *.replication.throttled.replicas

- A topic lists its throttled replicas as PARTITION:BROKER, or `*` for all; of the list this side has the partitions of this broker.
- The rate is that of a sliding window of replication.quota.window.num samples of replication.quota.window.size.seconds each, and
  at least over one window. So a copy that begins may take one second's bytes in one go.
- Without a rate nothing is exceeded, but the bytes of throttled partitions are counted for the metrics.

Source: Kafka's `ReplicationQuotaManager`, `SimpleRate`, `TopicConfigHandler.parseThrottledPartitions`; KIP-73.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from barnabas.quota.rate import SimpleRate

__all__ = ["ALL_REPLICAS", "ReplicationQuotaManager", "throttled_partitions"]

ALL_REPLICAS: frozenset[int] = frozenset({-1})
"""The throttled partitions of a topic with `*`."""

NO_LIMIT = 2**63 - 1


def throttled_partitions(replicas: Sequence[str], broker_id: int) -> Collection[int]:
    """Return the throttled partitions on a broker.

    Args:
        replicas: the value of *.replication.throttled.replicas, each entry PARTITION:BROKER, or one `*`.
    """
    if list(replicas) == ["*"]:
        return ALL_REPLICAS
    pairs = [entry.split(":") for entry in replicas if entry]
    return frozenset(int(index) for index, broker in pairs if int(broker) == broker_id)


class ReplicationQuotaManager:
    """One side's limit and usage.

    Args:
        samples, window_seconds: replication.quota.window.num and replication.quota.window.size.seconds.
        now_ms: a clock in milliseconds.

    Attributes:
        limit: bytes a second.
    """

    def __init__(self, samples: int, window_seconds: int, now_ms: Callable[[], int]) -> None:
        self.limit = NO_LIMIT
        self._now_ms = now_ms
        self._rate = SimpleRate(samples, window_seconds * 1000, now_ms())
        self._throttled: dict[str, Collection[int]] = {}

    def __repr__(self) -> str:
        limit = "none" if self.limit == NO_LIMIT else self.limit
        return f"<ReplicationQuotaManager limit={limit} topics={sorted(self._throttled)}>"

    def mark_throttled(self, topic: str, partitions: Collection[int]) -> None:
        """Set a topic's throttled partitions on this broker; none removes the throttle."""
        if partitions:
            self._throttled[topic] = partitions
        else:
            self._throttled.pop(topic, None)

    def is_throttled(self, topic: str, index: int) -> bool:
        """Return whether a partition's bytes count."""
        partitions = self._throttled.get(topic)
        return partitions is not None and (partitions is ALL_REPLICAS or index in partitions)

    def is_exceeded(self) -> bool:
        """Return whether the rate is above the limit."""
        return self.limit != NO_LIMIT and self._rate.measure(self._now_ms()) > self.limit

    def record(self, size: int) -> None:
        """Count bytes of a throttled partition."""
        self._rate.record(size, self._now_ms())

    def byte_rate(self) -> float:
        """Return the bytes a second as of now."""
        return self._rate.measure(self._now_ms())
