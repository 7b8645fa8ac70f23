"""The sliding window of a share partition: what may be delivered next, to whom it was, and where the group has got to. Data plane, pure.

    acquire       give records to a member; at most so many at once, fewer of those that fail again and again
    acknowledge   accept, release, reject, or renew the lock; all of a request or nothing
    release       a member is gone
    expire        locks have run out
    archive       records that the log has no more, or that belong to an aborted transaction

Whatever must be written down comes back as `Change`s; `settle` is called when the write is done or has failed. The start offset
passes finished records only when their change is settled.

Bad records are kept apart: from half of the delivery limit on a batch is given out in halves, and a record whose last delivery it is
goes alone (KIP-1206).

After a restart the window is what was persisted. Offsets between the persisted batches were never finished, so they are read again:
the *gap window* runs from the first such gap to the end offset as of the restart.

Invariants: batches ascend without overlap; start offset ≤ end offset + 1; no run below the start offset is delivered.

Sources: KIP-932, KIP-1206, KIP-1191; Kafka's `SharePartition`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.share_in_flight import NO_MEMBER, InFlightBatch, RecordState, Run, Transition

__all__ = [
    "AcknowledgeType",
    "Acknowledgement",
    "Acquired",
    "Change",
    "Limits",
    "ShareRecords",
]

MINIMUM_THROTTLE_DELIVERIES = 2
UNKNOWN_OFFSET = -1


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


class Limits(NamedTuple):
    """The group's settings as of this moment.

    Attributes:
        lock_until: loop time at which a lock given now ends.
        dead_letters: records that are rejected, or delivered too often, are written to another topic before they are archived.
    """

    max_delivery_count: int
    max_record_locks: int
    lock_until: float
    renew_enabled: bool = True
    dead_letters: bool = False


class Acquired(NamedTuple):
    """A range given to a member, and which delivery it is."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


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


class ShareRecords:
    """One share partition's window.

    Args:
        start_offset: the first offset not finished.

    Attributes:
        end_offset: the last offset acquired so far; with an empty window, the next to read.
    """

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self._firsts: list[int] = []
        self._batches: list[InFlightBatch] = []
        # Some record below the end offset may be available: look for it before reading on.
        self._look_back = False
        self._gap_start: int | None = None
        self._gap_end = -1

    def __repr__(self) -> str:
        return f"<ShareRecords {self.start_offset}..{self.end_offset} batches={len(self._batches)}>"

    @classmethod
    def restored(cls, start_offset: int, states: Iterable[tuple[int, int, int, int]]) -> ShareRecords:
        """The window as it was persisted.

        Args:
            states: first offset, last offset, delivery state and delivery count, in order.

        Raises:
            ValueError: the states are no window.
        """
        window = cls(start_offset)
        expected = start_offset
        for first, last, state, count in states:
            if first < start_offset or last < first or first < expected:
                raise ValueError(f"share state {first}..{last} does not continue {window!r}")
            if window._gap_start is None and first > expected:
                window._gap_start = expected
            expected = last + 1
            window._insert(Run(first, last, RecordState(state), count))
        if window._batches:
            window._look_back = True
            window.end_offset = window._batches[-1].last
            window._gap_end = window.end_offset
            window._advance()
        return window

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def batches(self) -> Sequence[InFlightBatch]:
        """What is in flight, in order; not to be changed."""
        return self._batches

    @property
    def size(self) -> int:
        """How many records the window spans."""
        return self.end_offset - self.start_offset + 1 if self._batches else 0

    @property
    def delivery_complete_count(self) -> int:
        """Finished records in the window, also those whose change is being written."""
        start = self.start_offset
        return sum(
            run.last - max(run.first, start) + 1
            for batch in self._batches
            for run in batch.runs
            if run.state.is_terminal and run.last >= start
        )

    @property
    def earliest_lock(self) -> float | None:
        """When the first lock runs out; None when nothing is acquired."""
        return min(
            (
                run.lock_until
                for batch in self._batches
                for run in batch.runs
                if run.state is RecordState.ACQUIRED and run.lock_until is not None
            ),
            default=None,
        )

    def archiving(self) -> list[Run]:
        """Runs on their way to the dead letter topic."""
        return [run for batch in self._batches for run in batch.runs if run.state is RecordState.ARCHIVING]

    @property
    def _is_drained(self) -> bool:
        return not self._batches or self.start_offset > self._batches[-1].last

    def next_fetch_offset(self) -> int:
        """Where to read: the first available record, or the first beyond the window."""
        if self._is_drained:
            self._look_back = False
            return self.end_offset
        if self._look_back:
            found = self._first_available()
            if found is not None:
                return found
            self._look_back = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap_start = self._gap_start if self._gap_active else None
        for batch in self._batches:
            if gap_start is not None:
                if batch.first > gap_start:
                    return gap_start
                gap_start = max(batch.last + 1, gap_start)
            for run in batch.runs:
                if run.is_available and run.last >= self.start_offset:
                    return max(run.first, self.start_offset)
        return None

    def can_acquire(self, max_record_locks: int) -> bool:
        """Whether reading is worth it: something is to be delivered again, or the window may grow."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.size < max_record_locks

    @property
    def _gap_active(self) -> bool:
        return self._gap_start is not None and self._gap_end == self.end_offset

    # -- acquiring ---------------------------------------------------------------------------------------------------

    def acquire(
        self,
        member_id: str,
        batches: Sequence[tuple[int, int]],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        strict: bool,
        limits: Limits,
    ) -> list[Acquired]:
        """Give what was read to a member.

        Args:
            batches: base and last offset of the record batches read.
            fetch_offset: where reading began; records from there to the first batch are no more in the log.
            batch_size: the size up to which neighbouring record batches become one range.
            strict: never more than `max_records` (record_limit); otherwise whole record batches.

        Returns:
            Ranges in order; may be empty.
        """
        if max_records <= 0 or not batches or batches[-1][1] < self.start_offset:
            return []
        last_offset, allowed = self._room(fetch_offset, max_records, batches[-1][1], limits)
        if allowed <= 0:
            return []
        read = _Reading(member_id, batches, batch_size, strict, limits)
        first_base = base = batches[0][0]
        if self._batches and fetch_offset < base and self.archive(fetch_offset, base - 1, RecordState.AVAILABLE):
            self._look_back = True
        floor = self._floor(base)
        if floor is None:
            base = max(base, self.start_offset)
        elif floor.last >= base:
            base = floor.first
        window = self._between(min(first_base, base), last_offset)
        if not window:
            return self._acquire_new(read, base, last_offset, allowed)
        return self._acquire_among(read, window, base, last_offset, allowed)

    def _room(self, fetch_offset: int, max_records: int, last_offset: int, limits: Limits) -> tuple[int, int]:
        """How far, and how many: what is in the window may be delivered again even if it cannot grow."""
        allowed = min(max_records, limits.max_record_locks - self.size)
        if allowed <= 0 and fetch_offset <= self.end_offset:
            return min(last_offset, self.end_offset), min(max_records, self.end_offset - fetch_offset + 1)
        return last_offset, allowed

    def _acquire_among(
        self, read: _Reading, window: list[InFlightBatch], base: int, last_offset: int, allowed: int
    ) -> list[Acquired]:
        result: list[Acquired] = []
        count = 0
        gap_start = base
        first_base = read.batches[0][0]
        for batch in window:
            if count >= allowed:
                break
            if self._gap_active:
                if gap_start < batch.first:
                    new = self._acquire_new(read, gap_start, batch.first - 1, allowed - count)
                    result += new
                    count += sum(found.size for found in new)
                gap_start = batch.last + 1
                if count >= allowed:
                    break
            throttled = self._is_throttled(batch, first_base, last_offset, read.limits)
            if throttled and count > 0:
                allowed = 0
                break
            within = batch.first >= first_base and batch.last <= last_offset
            if within and len(batch.runs) == 1 and not throttled and not (read.strict and batch.size > allowed - count):
                run = batch.runs[0]
                if run.is_available:
                    run.acquire(read.member_id, read.limits.lock_until)
                    result.append(Acquired(run.first, run.last, run.delivery_count))
                    count += run.size
                continue
            taken = self._acquire_part(read, batch, first_base, last_offset, allowed - count)
            result += taken
            count += sum(found.size for found in taken)
            if throttled and taken:
                allowed = 0
                break
        if count < allowed and window[-1].last < last_offset:
            result += self._acquire_new(read, window[-1].last + 1, last_offset, allowed - count)
        if result:
            self._move_gap(result[-1].last + 1)
        return result

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int, limits: Limits) -> bool:
        limit = _throttle_limit(limits.max_delivery_count)
        return any(
            run.delivery_count >= limit
            for run in batch.runs
            if run.is_available and run.last >= first and run.first <= last
        )

    def _acquire_part(
        self, read: _Reading, batch: InFlightBatch, first: int, last: int, allowed: int
    ) -> list[Acquired]:
        """Take the available runs of a batch, alone or in halves when they have failed often."""
        limits = read.limits
        throttle_limit = _throttle_limit(limits.max_delivery_count)
        isolates = limits.max_delivery_count > MINIMUM_THROTTLE_DELIVERIES
        most = allowed if read.strict else batch.size
        taken: list[Acquired] = []
        count = 0
        for run in list(batch.runs):
            if count >= most:
                break
            from_offset = max(run.first, first, self.start_offset)
            to_offset = min(run.last, last)
            if from_offset > to_offset or not run.is_available:
                continue
            is_last_chance = isolates and run.delivery_count == limits.max_delivery_count - 1
            if is_last_chance and count:
                break
            if run.delivery_count >= throttle_limit:
                most = min(most, max(1, batch.size >> (run.delivery_count - throttle_limit + 1)))
                if count >= most:
                    break
            wanted = 1 if is_last_chance else min(to_offset - from_offset + 1, most - count)
            for part in batch.cut(from_offset, from_offset + wanted - 1):
                part.acquire(read.member_id, limits.lock_until)
                _append_acquired(taken, Acquired(part.first, part.last, part.delivery_count))
                count += part.size
            if is_last_chance:
                break
        return taken

    def _acquire_new(self, read: _Reading, first: int, last: int, allowed: int) -> list[Acquired]:
        """Take records that are not in the window: whole record batches, or exactly so many."""
        if not self._batches and self.end_offset > first:
            first = self.end_offset
        if allowed < last - first + 1:
            whole = _end_of_batch(read.batches, first + allowed - 1)
            last = min(whole, last) if self._gap_active else whole
        result = []
        limits = read.limits
        if read.strict:
            run = Run(first, last, RecordState.AVAILABLE, 0)
            batch = self._insert(run)
            if run.size > allowed:
                # The rest of the batch has never been delivered: it waits for the next fetch.
                batch.split(0, first + allowed)
                self._look_back = True
            run.acquire(read.member_id, limits.lock_until)
            result.append(Acquired(run.first, run.last, 1))
        else:
            for start, end in _ranges(read.batches, first, last, read.batch_size):
                run = Run(start, end, RecordState.AVAILABLE, 0)
                self._insert(run)
                run.acquire(read.member_id, limits.lock_until)
                result.append(Acquired(start, end, 1))
        if self._firsts[0] == first:
            self.start_offset = first
        self.end_offset = max(self.end_offset, last)
        self._move_gap(result[-1].last + 1)
        return result

    def _move_gap(self, offset: int) -> None:
        """All gaps below an offset are filled: the next one begins after the batches that follow."""
        floor = self._floor(offset)
        while self._gap_active and floor is not None and floor.last >= offset:
            offset = floor.last + 1
            floor = self._floor(offset)
        self._gap_start = offset if self._gap_active and offset <= self._gap_end else None

    # -- acknowledging -----------------------------------------------------------------------------------------------

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
        floor = self._floor(asked.first)
        if floor is None and asked.first < self.start_offset:
            floor = self._floor(self.start_offset)
        if floor is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        window = self._between(floor.first, asked.last)
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
        for batch in self._batches:
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
                self._look_back = True
        return committed and self._advance()

    # -- time and the log --------------------------------------------------------------------------------------------

    def expire(self, now: float, limits: Limits) -> list[Change]:
        """End the locks that have run out. The records are available at once; the changes are written all the same."""
        changes = []
        for batch in self._batches:
            if not any(_has_expired(run, now) for run in batch.runs):
                continue
            for run in [*batch.cut(batch.first, self.start_offset - 1), *batch.cut(self.start_offset, batch.last)]:
                if not _has_expired(run, now):
                    continue
                wanted = RecordState.ARCHIVED if run.last < self.start_offset else RecordState.AVAILABLE
                state = run.leave(wanted, limits.max_delivery_count, limits.dead_letters)
                run.lock_until = None
                if state is RecordState.AVAILABLE:
                    self._look_back = True
                changes.append(Change(run.first, run.last, state, run.delivery_count, None))
        return changes

    def archive(self, first: int, last: int, state: RecordState) -> bool:
        """Finish the records of a range that are in a state; returns whether there were any."""
        found = False
        for batch in self._batches:
            if batch.first > last:
                break
            if batch.last >= first and any(
                run.state is state and run.last >= first and run.first <= last for run in batch.runs
            ):
                for run in batch.cut(max(first, batch.first), min(last, batch.last)):
                    if run.state is state:
                        run.archive()
                        found = True
        return found

    def finish_archiving(self, first: int, last: int) -> None:
        """Dead letters are written (or cannot be): the records are done with."""
        self.archive(first, last, RecordState.ARCHIVING)

    def advance(self) -> bool:
        """Let the start offset pass what is finished; returns whether it moved."""
        return self._advance()

    def move_start(self, log_start_offset: int) -> None:
        """The log begins later now: what is below can be delivered no more."""
        if log_start_offset <= self.start_offset:
            return
        if not self._batches:
            self.start_offset = self.end_offset = log_start_offset
            return
        if self.archive(self.start_offset, log_start_offset - 1, RecordState.AVAILABLE):
            self._look_back = True
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)

    def _advance(self) -> bool:
        """Move the start offset over finished records, and forget batches that lie wholly before it."""
        if not self._batches:
            return False
        floor = self._floor(self.start_offset)
        if floor is None:  # A gap that must be read again begins the window.
            return False
        finished = self._last_finished()
        if finished < self.start_offset:
            return False
        if finished == self._batches[-1].last:
            self.start_offset = self.end_offset = finished + 1
            self._firsts.clear()
            self._batches.clear()
            return True
        index = bisect_right(self._firsts, finished) - 1
        batch = self._batches[index]
        if finished == batch.last:
            index += 1
            self.start_offset = max(self.start_offset, self._firsts[index])
            if self._gap_active and self._gap_start is not None:
                self.start_offset = min(self._gap_start, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, finished + 1)
        del self._firsts[:index]
        del self._batches[:index]
        return True

    def _last_finished(self) -> int:
        """The end of the finished records at the front; -1 when the first is not finished."""
        last = UNKNOWN_OFFSET
        for batch in self._batches:
            if self._gap_active and self._gap_start is not None and batch.last >= self._gap_start:
                return last
            for run in batch.runs:
                if run.last < self.start_offset:
                    # Below the start there is nothing to wait for, unless a write is under way.
                    if run.transition is not None:
                        return last
                    last = run.last
                    continue
                if run.transition is not None or not run.state.is_terminal:
                    return last
                last = run.last
        return last

    # -- the batches -------------------------------------------------------------------------------------------------

    def _floor(self, offset: int) -> InFlightBatch | None:
        """The batch with the largest first offset at or below an offset."""
        index = bisect_right(self._firsts, offset) - 1
        return self._batches[index] if index >= 0 else None

    def _between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin in a range."""
        return self._batches[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def _insert(self, run: Run) -> InFlightBatch:
        batch = InFlightBatch(run)
        index = bisect_left(self._firsts, run.first)
        self._firsts.insert(index, run.first)
        self._batches.insert(index, batch)
        return batch


class _Reading(NamedTuple):
    """One acquisition's givens."""

    member_id: str
    batches: Sequence[tuple[int, int]]
    batch_size: int
    strict: bool
    limits: Limits


def _throttle_limit(max_delivery_count: int) -> int:
    return max(MINIMUM_THROTTLE_DELIVERIES, (max_delivery_count + 1) // 2)


def _append_acquired(acquired: list[Acquired], found: Acquired) -> None:
    last = acquired[-1] if acquired else None
    if last is not None and last.last + 1 == found.first and last.delivery_count == found.delivery_count:
        acquired[-1] = last._replace(last=found.last)
    else:
        acquired.append(found)


def _end_of_batch(batches: Sequence[tuple[int, int]], offset: int) -> int:
    """The end of the record batch that an offset is in; the offset itself when it is in none."""
    for base, last in reversed(batches):
        if base <= offset:
            return max(offset, last) if offset <= last else offset
    return offset


def _ranges(batches: Sequence[tuple[int, int]], first: int, last: int, batch_size: int) -> list[tuple[int, int]]:
    """Cut a range at record batches, so that a part is as small as it can be and has `batch_size` records at least."""
    ranges = []
    if last - first + 1 > batch_size:
        for base, _ in batches:
            if base > last:
                break
            if base - first >= batch_size:
                ranges.append((first, base - 1))
                first = base
    ranges.append((first, last))
    return ranges


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
