"""A Produce with acks=all that waits until its records are committed.

Each partition waits for its own offset. It ends with NOT_LEADER_OR_FOLLOWER if its leader changes, UNKNOWN_TOPIC_OR_PARTITION if its
replica is deleted, and REQUEST_TIMED_OUT if its records are not committed in time. A sole replica commits at once and never waits.

Source: Kafka's `DelayedProduce`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import DelayedOperation

__all__ = ["AwaitedCommit", "DelayedProduce", "settle_all"]


class AwaitedCommit:
    """One partition's part: the high watermark must reach `required_offset`; `error_code` is None until then."""

    __slots__ = ("error_code", "leader_epoch", "partition", "required_offset")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.leader_epoch = partition.leader_epoch
        self.error_code: ErrorCode | None = None

    def settle(self) -> bool:
        """Check again; return whether the outcome is known."""
        if self.error_code is not None:
            return True
        partition = self.partition
        if partition.is_deleted:
            self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            self.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif partition.log.high_watermark >= self.required_offset:
            enough = len(partition.state.maximal_isr) >= partition.effective_min_isr
            self.error_code = ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return self.error_code is not None


def settle_all(commits: Sequence[AwaitedCommit]) -> bool:
    """Check each again, also those after an open one; return whether every outcome is known."""
    open_commits = sum(not commit.settle() for commit in commits)
    return open_commits == 0


class DelayedProduce(DelayedOperation):
    """Waits until every commit is settled.

    Args:
        respond: makes the response when all outcomes are known.
    """

    __slots__ = ("_commits", "_respond")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        commits: Sequence[AwaitedCommit],
        respond: Callable[[Sequence[AwaitedCommit]], Any],
    ) -> None:
        super().__init__(loop.create_future())
        self._commits = commits
        self._respond = respond

    def __repr__(self) -> str:
        open_commits = sum(commit.error_code is None for commit in self._commits)
        return f"<DelayedProduce open={open_commits} commits={len(self._commits)}>"

    def notified(self, amount: int) -> None:
        if settle_all(self._commits):
            self.finish(self._respond(self._commits))

    def expired(self) -> None:
        for commit in self._commits:
            if not commit.settle():
                commit.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.finish(self._respond(self._commits))
