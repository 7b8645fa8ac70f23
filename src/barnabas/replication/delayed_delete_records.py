"""A DeleteRecords request that waits until no replica in service has the deleted records any more.

Each partition waits for its own offset: the low watermark, the smallest log start of the replicas in service, must reach it. A follower
learns of the leader's log start from the answer to its fetch, and reports its own with the next one. A partition ends with
NOT_LEADER_OR_FOLLOWER if this broker no longer leads it, UNKNOWN_TOPIC_OR_PARTITION if its replica is deleted, and REQUEST_TIMED_OUT if
the followers are too late: the leader has deleted the records, and the followers will.

Source: Kafka's `DelayedDeleteRecords`; KIP-107.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.awaited_offset import AwaitedOffset, settle_all, time_out
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import DelayedOperation

__all__ = ["AwaitedDeletion", "DelayedDeleteRecords"]

UNKNOWN_LOW_WATERMARK = -1


class AwaitedDeletion(AwaitedOffset):
    """One partition's part: the low watermark must reach `required_offset`."""

    __slots__ = ("low_watermark",)

    def __init__(self, partition: Partition, required_offset: int) -> None:
        super().__init__(partition, required_offset)
        self.low_watermark = UNKNOWN_LOW_WATERMARK

    def _reached(self) -> ErrorCode | None:
        if self.partition.low_watermark < self.required_offset:
            return None
        self.low_watermark = self.partition.low_watermark
        return ErrorCode.NONE


class DelayedDeleteRecords(DelayedOperation):
    """Waits until every deletion is settled; the future has no result."""

    __slots__ = ("_deletions",)

    def __init__(self, loop: asyncio.AbstractEventLoop, deletions: Sequence[AwaitedDeletion]) -> None:
        super().__init__(loop.create_future())
        self._deletions = deletions

    def __repr__(self) -> str:
        open_deletions = sum(deletion.error_code is None for deletion in self._deletions)
        return f"<DelayedDeleteRecords open={open_deletions} deletions={len(self._deletions)}>"

    def notified(self, amount: int) -> None:
        if settle_all(self._deletions):
            self.finish(None)

    def expired(self) -> None:
        time_out(self._deletions)
        self.finish(None)
