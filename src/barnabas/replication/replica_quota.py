"""The question of replication to a quota: whether the replicas that are behind may get more records now.

    leader      read for a follower that is not in sync ──► is_throttled and is_exceeded ──► an answer without records
    follower    next Fetch request                      ──► is_throttled and is_exceeded ──► the partition is not in it

Both sides `record` the bytes of all throttled partitions, those of in-sync replicas too, but an in-sync replica is never throttled.

Source: Kafka's `ReplicaQuota`, `UnboundedQuota`, `ReplicaManager.shouldLeaderThrottle`; KIP-73.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["UNBOUNDED", "ReplicaQuota"]


class ReplicaQuota(Protocol):
    """One side's limit; `quota.replication_quota_manager` is the real one."""

    def is_throttled(self, topic: str, index: int) -> bool:
        """Return whether a partition on this broker counts against the limit."""
        ...

    def is_exceeded(self) -> bool:
        """Return whether the rate is above the limit now."""
        ...

    def record(self, size: int) -> None:
        """Count bytes of a throttled partition."""
        ...


class _Unbounded:
    """No limit."""

    def __repr__(self) -> str:
        return "<no limit>"

    def is_throttled(self, topic: str, index: int) -> bool:
        return False

    def is_exceeded(self) -> bool:
        return False

    def record(self, size: int) -> None:
        """Count nothing."""


UNBOUNDED: ReplicaQuota = _Unbounded()
