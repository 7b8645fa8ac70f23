"""The end of acquired records: members acknowledge, release, or let their locks expire; and when that counts.

    acknowledge   accept, release, reject, or renew the lock; a request is applied completely or not at all
    release       a member is gone
    expire        locks have ended

Each function returns the `Change`s that must be written. `settle` is called when the write has succeeded or failed. The start offset
passes finished records only when their change is settled.

Invariant: no run below the start offset is delivered.

Sources: KIP-932, KIP-1191, KIP-1222; Kafka's `SharePartition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.in_flight import NO_MEMBER, InFlightBatch, RecordState, Run, Transition
from barnabas.share.window import Limits, ShareWindow

__all__ = ["AcknowledgeType", "Acknowledgement", "Change", "acknowledge", "expire", "release", "settle"]


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
    """One range of a request: one type for all offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Change(NamedTuple):
    """A range in a new state.

    Attributes:
        transition: what to settle; None for a change that holds even if it cannot be written, and is not settled.
        rejected: whether a member rejected the records; a dead letter gives it as the reason.
    """

    first: int
    last: int
    state: RecordState
    delivery_count: int
    transition: Transition | None
    rejected: bool = False


def acknowledge(
    window: ShareWindow, member_id: str, acknowledgements: Iterable[Acknowledgement], limits: Limits
) -> list[Change]:
    """Apply a member's acknowledgements of records that it holds.

    Raises:
        KafkaError: INVALID_RECORD_STATE, INVALID_REQUEST; then nothing has changed except renewed locks.
    """
    changes: list[Change] = []
    try:
        for asked in acknowledgements:
            if asked.last >= window.start_offset:
                batches = _acknowledged(window, asked)
                for first, last, kind in _stretches(asked):
                    first = max(first, window.start_offset)
                    for batch in batches:
                        if batch.last >= first and batch.first <= last:
                            for run in batch.cut(first, last):
                                _acknowledge(run, member_id, kind, limits, changes)
    except KafkaError:
        settle(window, changes, committed=False, now=float("-inf"))
        raise
    return changes


def _acknowledged(window: ShareWindow, asked: Acknowledgement) -> list[InFlightBatch]:
    """Return the batches of a range; raises KafkaError if it is not in flight completely."""
    floor = window.floor(asked.first)
    if floor is None and asked.first < window.start_offset:
        floor = window.floor(window.start_offset)
    if floor is None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        )
    batches = window.between(floor.first, asked.last)
    if batches[-1].last < asked.first:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The first offset in request is past acquired records."
        )
    if asked.last > batches[-1].last:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The last offset in request is past acquired records."
        )
    return batches


def _acknowledge(run: Run, member_id: str, kind: int, limits: Limits, changes: list[Change]) -> None:
    _check_owned(run, member_id)
    if kind != AcknowledgeType.RENEW:
        rejected = kind == AcknowledgeType.REJECT
        state = RecordState.ARCHIVING if rejected and limits.dead_letters else _STATE_AFTER[kind]
        changes.append(_begin(run, state, limits, rejected))
    elif limits.renew_enabled:
        run.lock_until = limits.lock_until
    else:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")


def _begin(run: Run, state: RecordState, limits: Limits, rejected: bool = False) -> Change:
    member_id = run.member_id
    state = run.leave(state, limits.max_delivery_count, limits.dead_letters)
    transition = Transition(run, member_id, limits.max_delivery_count)
    return Change(run.first, run.last, state, run.delivery_count, transition, rejected)


def release(window: ShareWindow, member_id: str, limits: Limits) -> list[Change]:
    """Release all records that a member holds."""
    return [
        _begin(run, _state_after_lock(window, run), limits)
        for batch in window.batches
        for run in _runs(window, batch)
        if run.member_id == member_id and run.state is RecordState.ACQUIRED and run.transition is None
    ]


def expire(window: ShareWindow, now: float, limits: Limits) -> list[Change]:
    """End the locks up to a time. The records are available immediately, whether or not the changes can be written."""
    changes = []
    for batch in window.batches:
        for run in _runs(window, batch):
            if _has_expired(run, now):
                state = run.leave(_state_after_lock(window, run), limits.max_delivery_count, limits.dead_letters)
                run.lock_until = None
                if state is RecordState.AVAILABLE:
                    window.look_back = True
                changes.append(Change(run.first, run.last, state, run.delivery_count, None))
    return changes


def settle(window: ShareWindow, changes: Iterable[Change], *, committed: bool, now: float) -> bool:
    """End the transitions of changes that are written, or roll them back.

    Returns: whether the start offset moved.
    """
    for change in changes:
        assert change.transition is not None, change
        if committed:
            change.transition.commit()
        else:
            change.transition.roll_back(now)
        if any(run.state is RecordState.AVAILABLE for run in change.transition.runs):
            window.look_back = True
    return committed and window.advance()


def _runs(window: ShareWindow, batch: InFlightBatch) -> list[Run]:
    """Return a batch's runs, split at the start offset."""
    return [*batch.cut(batch.first, window.start_offset - 1), *batch.cut(window.start_offset, batch.last)]


def _state_after_lock(window: ShareWindow, run: Run) -> RecordState:
    return RecordState.ARCHIVED if run.last < window.start_offset else RecordState.AVAILABLE


def _stretches(asked: Acknowledgement) -> Iterable[tuple[int, int, int]]:
    """Split a range into ranges of one type each."""
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
    if run.transition is not None:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE,
            "The record state is invalid. The acknowledgement of delivery could not be completed.",
        )
    if run.state is not RecordState.ACQUIRED:
        raise KafkaError(
            ErrorCode.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state."
        )
    if run.member_id not in (member_id, NO_MEMBER):
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")


def _has_expired(run: Run, now: float) -> bool:
    return (
        run.state is RecordState.ACQUIRED
        and run.transition is None
        and run.lock_until is not None
        and run.lock_until <= now
    )
