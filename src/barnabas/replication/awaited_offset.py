"""Requests that wait for followers: in each of their partitions an offset must be reached while this broker leads.

    offsets ──► settle ──► all are known: continue
                  └──► `AwaitedOffsets` in a purgatory ◄── notify: a moved watermark, another leader; or the timeout

A partition ends with UNKNOWN_TOPIC_OR_PARTITION if its replica here is deleted, with KAFKA_STORAGE_ERROR if its disk has failed, and with
NOT_LEADER_OR_FOLLOWER if this broker has lost the leadership since, even if it leads again: another leader may have cut off what was
awaited. A higher leader epoch of the same leader ends nothing, because only a follower truncates its log.

Source: Kafka's `DelayedProduce`, `DelayedDeleteRecords`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import DelayedOperation, Purgatory

__all__ = ["AwaitedOffset", "all_settled"]


class AwaitedOffset:
    """One partition's part: waits for `required_offset`; `error_code` is None until the outcome is known."""

    __slots__ = ("_leaderships", "error_code", "partition", "required_offset")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.error_code: ErrorCode | None = None
        self._leaderships = partition.leaderships

    def settle(self) -> bool:
        """Check again; return whether the outcome is known."""
        if self.error_code is None:
            partition = self.partition
            if partition.is_deleted:
                self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.lost is not None:
                self.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            elif not partition.is_leader or partition.leaderships != self._leaderships:
                self.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                self.error_code = self._reached()
        return self.error_code is not None

    def _reached(self) -> ErrorCode | None:
        """Return the outcome at the leader; None as long as the offset is not reached."""
        raise NotImplementedError


class AwaitedOffsets(DelayedOperation):
    """The wait of one request until each of its offsets is settled; the future has no result."""

    __slots__ = ("_awaited",)

    def __init__(self, awaited: Sequence[AwaitedOffset], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop.create_future())
        self._awaited = awaited

    def __repr__(self) -> str:
        unsettled = sum(each.error_code is None for each in self._awaited)
        return f"<AwaitedOffsets unsettled={unsettled} of={len(self._awaited)}>"

    def notified(self, amount: int) -> None:
        if _settle_all(self._awaited):
            self.finish(None)

    def expired(self) -> None:
        for each in self._awaited:
            if not each.settle():
                each.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.finish(None)


async def all_settled(awaited: Sequence[AwaitedOffset], purgatory: Purgatory, timeout_ms: int) -> None:
    """Wait until the outcome of each is known; after `timeout_ms` it is REQUEST_TIMED_OUT.

    Args:
        purgatory: is notified of the partitions' changes.
    """
    if not _settle_all(awaited):
        operation = AwaitedOffsets(awaited, purgatory.loop)
        purgatory.watch(operation, (each.partition for each in awaited), timeout_ms)
        await operation.future


def _settle_all(awaited: Sequence[AwaitedOffset]) -> bool:
    """Check each again, even after one that is still open; return whether every outcome is known."""
    unsettled = sum(not each.settle() for each in awaited)
    return unsettled == 0
