"""The records of a share partition in the hands of its members: what may be said about them, and when it counts. Data plane, pure.

    acquire       give records to a member (`acquisition`)
    acknowledge   accept, release, reject, or renew the lock; all of a request or nothing
    release       a member is gone
    expire        locks have run out

Whatever must be written down comes back as `Change`s; `settle` is called when the write is done or has failed. The start offset
passes finished records only when their change is settled.

Invariant: no run below the start offset is delivered.

Sources: KIP-932, KIP-1191, KIP-1222; Kafka's `SharePartition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.acquisition import Reading, acquire
from barnabas.share.in_flight import NO_MEMBER, InFlightBatch, RecordState, Run, Transition
from barnabas.share.window import Acquired, Limits, ShareWindow

__all__ = ["AcknowledgeType", "Acknowledgement", "Acquired", "Change", "Limits", "ShareRecords"]


class AcknowledgeType:
    """The numbers of the protocol."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATE_AFTER = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """One range of a request: one type for all of it, or one for each offset."""

    first: int
    last: int
    types: Sequence[int]


class Change(NamedTuple):
    """A range in a new state.

    Attributes:
        transition: what to settle; None for a change that stands whether it is written or not.
        rejected: a member rejected the records (else they were delivered too often, if they are to be dead letters).
    """

    first: int
    last: int
    state: RecordState
    delivery_count: int
    transition: Transition | None
    rejected: bool = False


class ShareRecords(ShareWindow):
    """One share partition's window, and what its members do."""

    def acquire(self, read: Reading, max_records: int) -> list[Acquired]:
        """Give what was read to a member; ranges in order, none when there is nothing to give."""
        return acquire(self, read, max_records)

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], limits: Limits) -> list[Change]:
        """Take a member's word on records that it holds.

        Raises:
            KafkaError: INVALID_RECORD_STATE, INVALID_REQUEST; nothing has changed then, renewed locks apart.
        """
        changes: list[Change] = []
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last >= self.start_offset:
                    window = self._acknowledged(acknowledgement)
                    for first, last, kind in _stretches(acknowledgement):
                        self._acknowledge(member_id, window, first, last, kind, limits, changes)
        except KafkaError:
            self.settle(changes, committed=False, now=float("-inf"))
            raise
        return changes

    def _acknowledged(self, asked: Acknowledgement) -> list[InFlightBatch]:
        floor = self.floor(asked.first)
        if floor is None and asked.first < self.start_offset:
            floor = self.floor(self.start_offset)
        if floor is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        window = self.between(floor.first, asked.last)
        if window[-1].last < asked.first:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The first offset in request is past acquired records.",
            )
        if asked.last > window[-1].last:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Batch record not found. The last offset in request is past acquired records.",
            )
        return window

    def _acknowledge(
        self,
        member_id: str,
        window: list[InFlightBatch],
        first: int,
        last: int,
        kind: int,
        limits: Limits,
        changes: list[Change],
    ) -> None:
        first = max(first, self.start_offset)
        for batch in window:
            if batch.last < first or batch.first > last:
                continue
            for run in batch.cut(first, last):
                _check_owned(run, member_id)
                if kind == AcknowledgeType.RENEW:
                    if not limits.renew_enabled:
                        raise KafkaError(
                            ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group."
                        )
                    run.lock_until = limits.lock_until
                    continue
                rejected = kind == AcknowledgeType.REJECT
                state = RecordState.ARCHIVING if rejected and limits.dead_letters else _STATE_AFTER[kind]
                changes.append(self._begin(run, state, limits, rejected))

    def _begin(self, run: Run, state: RecordState, limits: Limits, rejected: bool = False) -> Change:
        member_id = run.member_id
        state = run.leave(state, limits.max_delivery_count, limits.dead_letters)
        transition = Transition(run, member_id, limits.max_delivery_count)
        return Change(run.first, run.last, state, run.delivery_count, transition, rejected)

    def release(self, member_id: str, limits: Limits) -> list[Change]:
        """Take back all that a member holds."""
        changes = []
        for batch in self.batches:
            if not any(run.member_id == member_id for run in batch.runs):
                continue
            for run in [*batch.cut(batch.first, self.start_offset - 1), *batch.cut(self.start_offset, batch.last)]:
                if run.member_id == member_id and run.state is RecordState.ACQUIRED and run.transition is None:
                    state = RecordState.ARCHIVED if run.last < self.start_offset else RecordState.AVAILABLE
                    changes.append(self._begin(run, state, limits))
        return changes

    def settle(self, changes: Iterable[Change], *, committed: bool, now: float) -> bool:
        """The changes are written, or cannot be.

        Returns:
            Whether the start offset moved.
        """
        for change in changes:
            if change.transition is None:
                continue
            if committed:
                change.transition.commit()
            else:
                change.transition.roll_back(now)
            if any(run.state is RecordState.AVAILABLE for run in change.transition.runs):
                self.look_back = True
        return committed and self.advance()

    # -- time --------------------------------------------------------------------------------------------------------

    def expire(self, now: float, limits: Limits) -> list[Change]:
        """End the locks that have run out. The records are available at once; the changes are written all the same."""
        changes = []
        for batch in self.batches:
            if not any(_has_expired(run, now) for run in batch.runs):
                continue
            for run in [*batch.cut(batch.first, self.start_offset - 1), *batch.cut(self.start_offset, batch.last)]:
                if not _has_expired(run, now):
                    continue
                wanted = RecordState.ARCHIVED if run.last < self.start_offset else RecordState.AVAILABLE
                state = run.leave(wanted, limits.max_delivery_count, limits.dead_letters)
                run.lock_until = None
                if state is RecordState.AVAILABLE:
                    self.look_back = True
                changes.append(Change(run.first, run.last, state, run.delivery_count, None))
        return changes


def _stretches(asked: Acknowledgement) -> Iterable[tuple[int, int, int]]:
    """Ranges of one type each."""
    types = asked.types
    if len(types) == 1:
        yield asked.first, asked.last, types[0]
        return
    first = asked.first
    for index in range(1, len(types) + 1):
        offset = asked.first + index
        if index == len(types) or types[index] != types[index - 1]:
            yield first, offset - 1, types[index - 1]
            first = offset


def _check_owned(run: Run, member_id: str) -> None:
    if run.state is not RecordState.ACQUIRED and run.transition is None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state."
        )
    if run.transition is not None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE,
            "The record state is invalid. The acknowledgement of delivery could not be completed.",
        )
    if run.member_id in (member_id, NO_MEMBER):
        return
    raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")


def _has_expired(run: Run, now: float) -> bool:
    return (
        run.state is RecordState.ACQUIRED
        and run.transition is None
        and run.lock_until is not None
        and run.lock_until <= now
    )
