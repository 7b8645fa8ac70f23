"""Appends that wait until their records are committed: a Produce with acks=all, and an append of the broker itself.

Each partition waits for its own offset. It ends with NOT_LEADER_OR_FOLLOWER if this broker no longer leads it, UNKNOWN_TOPIC_OR_PARTITION
if its replica is deleted, and REQUEST_TIMED_OUT if its records are not committed in time. A higher leader epoch of the same leader ends
nothing: only a follower truncates its log. A sole replica commits at once and never waits.

The broker's own append (`DelayedCommit`) ends when the high watermark reaches it or this broker loses the leadership. A time limit would
settle nothing: the state of its writer rests on the records, which stay in the log and may be committed later.

Source: Kafka's `DelayedProduce`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.awaited_offset import AwaitedOffset, settle_all, time_out
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import DelayedOperation

__all__ = ["AwaitedCommit", "DelayedCommit", "DelayedProduce"]


class AwaitedCommit(AwaitedOffset):
    """One partition's part: the high watermark must reach `required_offset`."""

    __slots__ = ()

    def _reached(self) -> ErrorCode | None:
        partition = self.partition
        if partition.log.high_watermark < self.required_offset:
            return None
        enough = len(partition.state.maximal_isr) >= partition.effective_min_isr
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


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
        time_out(self._commits)
        self.finish(self._respond(self._commits))


class DelayedCommit(DelayedOperation):
    """Waits until a record is committed, or until this broker no longer leads its partition.

    Its future resolves with the record's offset. Too few in-sync replicas are no error here, unlike with a Produce: what is below the
    high watermark is committed.
    """

    __slots__ = ("_last_offset", "_partition")

    def __init__(self, loop: asyncio.AbstractEventLoop, partition: Partition, last_offset: int) -> None:
        super().__init__(loop.create_future())
        self._partition = partition
        self._last_offset = last_offset

    def __repr__(self) -> str:
        return f"<DelayedCommit last_offset={self._last_offset} partition={self._partition!r}>"

    def notified(self, amount: int) -> None:
        partition = self._partition
        if partition.is_deleted:
            self.fail(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif not partition.is_leader:
            self.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif partition.log.high_watermark > self._last_offset:
            self.finish(self._last_offset)

    def expired(self) -> None:
        self.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
