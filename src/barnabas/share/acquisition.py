"""Which records a member of a share group acquires, how many, and in what parts.

    read from the log        |  batch  |  batch  |  batch  |        record batches of the log
    in the window already    |   run x2    |                        acquired again if available
    new                                    |         |              acquired for the first time, in whole record batches

- A request acquires at most max_records, rounded up to whole record batches unless it is strict (record_limit); and never so many that
  more are in flight than the group allows.
- Bad records are isolated: from half of the delivery limit on a batch is acquired in halves, and a record before its last delivery is
  acquired alone.

Sources: KIP-932, KIP-1206; Kafka's `SharePartition.acquire`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.share.in_flight import InFlightBatch, RecordState, Run
from barnabas.share.window import Acquired, Limits, ShareWindow

__all__ = ["Reading", "acquire"]

MINIMUM_THROTTLE_DELIVERIES = 2


class Reading(NamedTuple):
    """The record batches that were read for a member.

    Attributes:
        batches: base and last offset of each.
        fetch_offset: where reading started; the log no longer has records between there and the first batch.
        batch_size: neighbouring record batches become one range up to this many records.
        strict: never more than max_records; otherwise whole record batches.
    """

    member_id: str
    batches: Sequence[tuple[int, int]]
    fetch_offset: int
    batch_size: int
    strict: bool
    limits: Limits


def acquire(window: ShareWindow, read: Reading, max_records: int) -> list[Acquired]:
    """Give records that were read to a member; returns ranges in order."""
    return _Acquisition(window, read).run(max_records)


class _Acquisition:
    """One acquisition."""

    def __init__(self, window: ShareWindow, read: Reading) -> None:
        self._window = window
        self._read = read

    def run(self, max_records: int) -> list[Acquired]:
        window, batches = self._window, self._read.batches
        if not batches or batches[-1][1] < window.start_offset:
            return []
        first_base = base = batches[0][0]
        fetch_offset = self._read.fetch_offset
        if fetch_offset < base:  # The log no longer has records there.
            window.archive(fetch_offset, base - 1, RecordState.AVAILABLE)
            if window.gap_active:
                window.move_gap(base)
            # If they filled the window, no acknowledgement is left that would move its start.
            window.advance()
        last_offset, allowed = self._room(max_records, batches[-1][1])
        floor = window.floor(base)
        if floor is not None and floor.last >= base:
            base = floor.first
        if allowed <= 0 or base > last_offset:
            return []
        known = window.between(min(first_base, base), last_offset)
        if not known:
            return self._acquire_new(base, last_offset, allowed)
        return self._acquire_among(known, base, last_offset, allowed)

    def _room(self, max_records: int, last_offset: int) -> tuple[int, int]:
        """Return the last offset and the number of records; a full window allows only records that are in it already."""
        window, fetch_offset = self._window, self._read.fetch_offset
        allowed = min(max_records, self._read.limits.max_record_locks - window.size)
        if allowed <= 0 and fetch_offset <= window.end_offset:
            return min(last_offset, window.end_offset), min(max_records, window.end_offset - fetch_offset + 1)
        return last_offset, allowed

    def _acquire_among(self, known: list[InFlightBatch], base: int, last_offset: int, allowed: int) -> list[Acquired]:
        result: list[Acquired] = []
        count = 0
        gap_start = base
        first_base = self._read.batches[0][0]
        for batch in known:
            if count >= allowed:
                break
            if self._window.gap_active:
                if gap_start < batch.first:
                    new = self._acquire_new(gap_start, batch.first - 1, allowed - count)
                    result += new
                    count += sum(found.size for found in new)
                gap_start = batch.last + 1
                if count >= allowed:
                    break
            throttled = self._is_throttled(batch, first_base, last_offset)
            if throttled and count > 0:
                allowed = 0
                break
            within = batch.first >= first_base and batch.last <= last_offset
            if (
                within
                and len(batch.runs) == 1
                and not throttled
                and not (self._read.strict and batch.size > allowed - count)
            ):
                run = batch.runs[0]
                if run.is_available:
                    run.acquire(self._read.member_id, self._read.limits.lock_until)
                    result.append(Acquired(run.first, run.last, run.delivery_count))
                    count += run.size
                continue
            taken = self._acquire_part(batch, first_base, last_offset, allowed - count)
            result += taken
            count += sum(found.size for found in taken)
            if throttled and taken:
                allowed = 0
                break
        if count < allowed and known[-1].last < last_offset:
            result += self._acquire_new(known[-1].last + 1, last_offset, allowed - count)
        if result:
            self._window.move_gap(result[-1].last + 1)
        return result

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        limit = _throttle_limit(self._read.limits.max_delivery_count)
        return any(
            run.delivery_count >= limit
            for run in batch.runs
            if run.is_available and run.last >= first and run.first <= last
        )

    def _acquire_part(self, batch: InFlightBatch, first: int, last: int, allowed: int) -> list[Acquired]:
        """Acquire available runs of a batch, alone or in halves if they were delivered often."""
        limits = self._read.limits
        throttle_limit = _throttle_limit(limits.max_delivery_count)
        isolates = limits.max_delivery_count > MINIMUM_THROTTLE_DELIVERIES
        most = allowed if self._read.strict else batch.size
        taken: list[Acquired] = []
        count = 0
        for run in list(batch.runs):
            if count >= most:
                break
            from_offset = max(run.first, first, self._window.start_offset)
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
                part.acquire(self._read.member_id, limits.lock_until)
                _append_acquired(taken, Acquired(part.first, part.last, part.delivery_count))
                count += part.size
            if is_last_chance:
                break
        return taken

    def _acquire_new(self, first: int, last: int, allowed: int) -> list[Acquired]:
        """Acquire records that are not in the window: whole record batches, or exactly `allowed`.

        The start offset can be within a record batch: the log's start has moved there. Nothing below it is acquired, for nothing that
        is acknowledged there would be written.
        """
        first = max(first, self._window.start_offset)
        if first > last:
            return []
        if allowed < last - first + 1:
            whole = _end_of_batch(self._read.batches, first + allowed - 1)
            last = min(whole, last) if self._window.gap_active else whole
        result = []
        limits = self._read.limits
        if self._read.strict:
            run = Run(first, last, RecordState.AVAILABLE, 0)
            batch = self._window.insert(run)
            if run.size > allowed:
                # The rest of the batch waits for the next fetch; it was never delivered.
                batch.split(0, first + allowed)
                self._window.look_back = True
            run.acquire(self._read.member_id, limits.lock_until)
            result.append(Acquired(run.first, run.last, 1))
        else:
            for start, end in _ranges(self._read.batches, first, last, self._read.batch_size):
                run = Run(start, end, RecordState.AVAILABLE, 0)
                self._window.insert(run)
                run.acquire(self._read.member_id, limits.lock_until)
                result.append(Acquired(start, end, 1))
        if self._window.batches[0].first == first:
            self._window.start_offset = first
        self._window.end_offset = max(self._window.end_offset, last)
        self._window.move_gap(result[-1].last + 1)
        return result


def _throttle_limit(max_delivery_count: int) -> int:
    return max(MINIMUM_THROTTLE_DELIVERIES, (max_delivery_count + 1) // 2)


def _append_acquired(acquired: list[Acquired], found: Acquired) -> None:
    last = acquired[-1] if acquired else None
    if last is not None and last.last + 1 == found.first and last.delivery_count == found.delivery_count:
        acquired[-1] = last._replace(last=found.last)
    else:
        acquired.append(found)


def _end_of_batch(batches: Sequence[tuple[int, int]], offset: int) -> int:
    """Return the last offset of the record batch that holds an offset; the offset itself if no batch does."""
    for base, last in reversed(batches):
        if base <= offset:
            return max(offset, last) if offset <= last else offset
    return offset


def _ranges(batches: Sequence[tuple[int, int]], first: int, last: int, batch_size: int) -> list[tuple[int, int]]:
    """Split a range at record batches into the smallest parts of at least `batch_size` records."""
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
