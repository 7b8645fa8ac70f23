"""Appends that wait until their records are committed: a Produce with acks=all, and an append of the broker itself.

Each partition of a Produce waits for its own offset (`awaited_offset`). A sole replica commits with the append and does not wait, unless
`barnabas.flush.before.ack` is on. With it acks=1 waits too, for the leader's sync (`AwaitedSync`).

The broker's own append (`DelayedCommit`) ends when the high watermark reaches it, this broker loses the leadership, or the leader's sync
fails where `barnabas.flush.before.ack` waits for it: then the log takes no writes until it is opened again. A time limit would settle
nothing: the state of its writer rests on the records, which stay in the log and may be committed later.

Source: Kafka's `DelayedProduce`.
"""

from __future__ import annotations

import asyncio

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.awaited_offset import AwaitedOffset
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import DelayedOperation

__all__ = ["AwaitedCommit", "AwaitedSync", "DelayedCommit"]


class AwaitedCommit(AwaitedOffset):
    """One partition's part: the high watermark must reach `required_offset`."""

    __slots__ = ()

    def _reached(self) -> ErrorCode | None:
        partition = self.partition
        if partition.log.high_watermark < self.required_offset:
            return _unless_failed(partition, self.required_offset)
        enough = len(partition.state.maximal_isr) >= partition.effective_min_isr
        return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class AwaitedSync(AwaitedOffset):
    """One partition's part of a Produce with acks=1: the leader must have synced the records below `required_offset`."""

    __slots__ = ()

    def _reached(self) -> ErrorCode | None:
        partition = self.partition
        if not partition.awaits_sync or partition.log.recovery_point >= self.required_offset:
            return ErrorCode.NONE
        return _unless_failed(partition, self.required_offset)


def _unless_failed(partition: Partition, required_offset: int) -> ErrorCode | None:
    """Return the outcome of records that will never be synced; None as long as they may be."""
    has_failed = partition.sync_failure is not None and partition.awaits_sync
    return ErrorCode.KAFKA_STORAGE_ERROR if has_failed and partition.log.recovery_point < required_offset else None


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
        elif partition.lost is not None:
            self.fail(partition.lost)
        elif not partition.is_leader:
            self.fail(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        elif partition.log.high_watermark > self._last_offset:
            self.finish(self._last_offset)
        elif (code := _unless_failed(partition, self._last_offset + 1)) is not None:
            self.fail(KafkaError(code))

    def expired(self) -> None:
        self.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
