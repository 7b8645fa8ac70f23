"""One partition's part of a request that waits for followers: an offset must be reached while this broker leads."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.replication.partition import Partition

__all__ = ["AwaitedOffset", "settle_all", "time_out"]


class AwaitedOffset:
    """Waits for `required_offset`; `error_code` is None until the outcome is known.

    It ends with UNKNOWN_TOPIC_OR_PARTITION if the replica here is deleted, and NOT_LEADER_OR_FOLLOWER if this broker no longer leads.
    """

    __slots__ = ("error_code", "partition", "required_offset")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.error_code: ErrorCode | None = None

    def settle(self) -> bool:
        """Check again; return whether the outcome is known."""
        if self.error_code is None:
            if self.partition.is_deleted:
                self.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not self.partition.is_leader:
                self.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                self.error_code = self._reached()
        return self.error_code is not None

    def _reached(self) -> ErrorCode | None:
        """Return the outcome at the leader; None as long as the offset is not reached."""
        raise NotImplementedError


def settle_all(awaited: Sequence[AwaitedOffset]) -> bool:
    """Check each again, even after one that is still open; return whether every outcome is known."""
    unsettled = sum(not each.settle() for each in awaited)
    return unsettled == 0


def time_out(awaited: Sequence[AwaitedOffset]) -> None:
    """Check each a last time; those whose offset is not reached end with REQUEST_TIMED_OUT."""
    for each in awaited:
        if not each.settle():
            each.error_code = ErrorCode.REQUEST_TIMED_OUT
