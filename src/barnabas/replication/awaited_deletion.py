"""A DeleteRecords request that waits until no replica in service has the deleted records any more.

Each partition waits for its own offset: the low watermark, the smallest log start of the replicas in service, must reach it. A follower
learns of the leader's log start from the answer to its fetch, and reports its own with the next one. REQUEST_TIMED_OUT means that the
followers are too late: the leader has deleted the records, and the followers will.

Source: Kafka's `DelayedDeleteRecords`; KIP-107.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.awaited_offset import AwaitedOffset
from barnabas.replication.partition import Partition

__all__ = ["AwaitedDeletion"]

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
