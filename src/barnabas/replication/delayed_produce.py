"""A Produce with acks=all that waits until its records are committed. Data plane.

Every partition that was appended to waits for its own offset; one whose leader moves away or whose replica is deleted ends
with NOT_LEADER_OR_FOLLOWER, one that is not committed in time with REQUEST_TIMED_OUT. A sole replica commits at once, so
that no operation is made at all.

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
    """One partition's part: which offset must be below the high watermark, and how it ended (None: not yet)."""

    __slots__ = ("error_code", "leader_epoch", "partition", "required_offset")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.leader_epoch = partition.leader_epoch
        self.error_code: ErrorCode | None = None

    def settle(self) -> bool:
        """Look again; returns whether the outcome is known."""
        if self.error_code is not None:
            return True
        partition = self.partition
        if partition.is_deleted:
            self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            self.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif partition.log.high_watermark >= self.required_offset:
            enough = len(partition.isr) >= partition.effective_min_isr
            self.error_code = ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return self.error_code is not None


def settle_all(commits: Sequence[AwaitedCommit]) -> bool:
    """Look at each again, also after an open one; returns whether every outcome is known."""
    open_commits = sum(not commit.settle() for commit in commits)
    return open_commits == 0


class DelayedProduce(DelayedOperation):
    """Waits until every commit is settled.

    Args:
        respond: makes the response once all outcomes are known.
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
        return f"<DelayedProduce {open_commits}/{len(self._commits)} open>"

    def notified(self, amount: int) -> None:
        if settle_all(self._commits):
            self.finish(self._respond(self._commits))

    def expired(self) -> None:
        for commit in self._commits:
            if not commit.settle():
                commit.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.finish(self._respond(self._commits))
