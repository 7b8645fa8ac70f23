"""ShareWindow: the batches in flight of a share partition, between its start offset and its end offset.

    start offset                                   end offset
    |  batch  |  batch  |      gap      |  batch   |            next_fetch_offset: the first available record, or the end

- The start offset passes finished records; batches below it are forgotten.
- The end offset is that of the last record ever acquired.
- After a restart the window is restored from its persisted state. Offsets between the persisted batches were never finished, so they are
  read again: the *gap window* runs from the first such gap to the end offset at the restart.
- Records that the log no longer has (its start moved, compaction) are archived if no member holds them.

Invariants: batches ascend without overlap; start offset ≤ end offset + 1.

Sources: KIP-932; Kafka's `SharePartition`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.share.in_flight import InFlightBatch, RecordState, Run

__all__ = ["Acquired", "Limits", "ShareWindow"]

UNKNOWN_OFFSET = -1


class Limits(NamedTuple):
    """The group's settings now.

    Attributes:
        lock_until: loop time at which a lock that starts now ends.
        dead_letters: whether records that are rejected, or delivered too often, go to another topic before they are archived.
    """

    max_delivery_count: int
    max_record_locks: int
    lock_until: float
    renew_enabled: bool = True
    dead_letters: bool = False


class Acquired(NamedTuple):
    """A range that a member acquired, and the number of its deliveries."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class ShareWindow:
    """One share partition's batches.

    Args:
        start_offset: the first offset that is not finished.

    Attributes:
        end_offset: the last offset acquired so far; with an empty window, the next to read.
        look_back: whether a record below the end offset may be available, so that reading starts there.
    """

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self._firsts: list[int] = []
        self._batches: list[InFlightBatch] = []
        self.look_back = False
        self._gap_start: int | None = None
        self._gap_end = -1

    def __repr__(self) -> str:
        return f"<ShareWindow {self.start_offset}..{self.end_offset} batches={len(self._batches)}>"

    @classmethod
    def restored(cls, start_offset: int, states: Iterable[tuple[int, int, int, int]]) -> ShareWindow:
        """Restore a window from its persisted state.

        Args:
            states: first offset, last offset, delivery state and delivery count, in order.

        Raises:
            ValueError: the states overlap, descend, or start below the start offset.
        """
        window = cls(start_offset)
        expected = start_offset
        for first, last, state, count in states:
            if first < start_offset or last < first or first < expected:
                raise ValueError(f"share state {first}..{last} does not continue {window!r}")
            if window._gap_start is None and first > expected:
                window._gap_start = expected
            expected = last + 1
            window.insert(Run(first, last, RecordState(state), count))
        if window._batches:
            window.look_back = True
            window.end_offset = window._batches[-1].last
            window._gap_end = window.end_offset
            window.advance()
        return window

    @property
    def batches(self) -> Sequence[InFlightBatch]:
        """The batches in flight, in order; not to be changed."""
        return self._batches

    @property
    def size(self) -> int:
        """The number of records that the window spans."""
        return self.end_offset - self.start_offset + 1 if self._batches else 0

    @property
    def delivery_complete_count(self) -> int:
        """The number of finished records in the window, also those whose change is being written."""
        start = self.start_offset
        return sum(
            run.last - max(run.first, start) + 1
            for batch in self._batches
            for run in batch.runs
            if run.state.is_terminal and run.last >= start
        )

    @property
    def earliest_lock(self) -> float | None:
        """When the first lock ends; None if no records are acquired."""
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
        """Return the runs that are being written to the dead letter topic."""
        return [run for batch in self._batches for run in batch.runs if run.state is RecordState.ARCHIVING]

    @property
    def _is_drained(self) -> bool:
        return not self._batches or self.start_offset > self._batches[-1].last

    def next_fetch_offset(self) -> int:
        """Return where to read: the first available record, or the first beyond the window."""
        if self._is_drained:
            self.look_back = False
            return self.end_offset
        if self.look_back:
            found = self._first_available()
            if found is not None:
                return found
            self.look_back = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap_start = self._gap_start if self.gap_active else None
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
        """Return whether reading may give records: one is available again, or the window may grow."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.size < max_record_locks

    @property
    def gap_active(self) -> bool:
        return self._gap_start is not None and self._gap_end == self.end_offset

    def move_gap(self, offset: int) -> None:
        """Move the gap to an offset, below which all gaps are filled, or behind the batches there."""
        floor = self.floor(offset)
        while self.gap_active and floor is not None and floor.last >= offset:
            offset = floor.last + 1
            floor = self.floor(offset)
        self._gap_start = offset if self.gap_active and offset <= self._gap_end else None

    def archive(self, first: int, last: int, state: RecordState) -> bool:
        """Archive the records of a range that are in a state; returns whether there were any."""
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
        """Archive records whose dead letters are written, or cannot be."""
        self.archive(first, last, RecordState.ARCHIVING)

    def move_start(self, log_start_offset: int) -> None:
        """Move the start offset to the log's, below which records can no longer be delivered."""
        if log_start_offset <= self.start_offset:
            return
        self.archive(self.start_offset, log_start_offset - 1, RecordState.AVAILABLE)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        if self.gap_active and self._gap_start is not None and self._gap_start < log_start_offset:
            # The records of the gap are gone: reading there again would find nothing, for ever.
            self.move_gap(log_start_offset)

    def advance(self) -> bool:
        """Move the start offset past finished records and forget the batches below it; returns whether it moved."""
        if not self._batches:
            return False
        floor = self.floor(self.start_offset)
        if floor is None:
            if self.gap_active and self._gap_start is not None and self._gap_start < self._firsts[0]:
                return False  # The window starts with a gap that must be read again.
            self.start_offset = self._firsts[0]
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
            if self.gap_active and self._gap_start is not None:
                self.start_offset = min(self._gap_start, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, finished + 1)
        del self._firsts[:index]
        del self._batches[:index]
        return True

    def _last_finished(self) -> int:
        """Return the last of the finished records at the front; -1 if the first is not finished."""
        last = UNKNOWN_OFFSET
        for batch in self._batches:
            if self.gap_active and self._gap_start is not None and batch.last >= self._gap_start:
                return last
            for run in batch.runs:
                if run.last < self.start_offset:
                    # Below the start only a write under way holds the start offset.
                    if run.transition is not None:
                        return last
                    last = run.last
                    continue
                if run.transition is not None or not run.state.is_terminal:
                    return last
                last = run.last
        return last

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the batch with the largest first offset at or below an offset."""
        index = bisect_right(self._firsts, offset) - 1
        return self._batches[index] if index >= 0 else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that start in a range."""
        return self._batches[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def insert(self, run: Run) -> InFlightBatch:
        batch = InFlightBatch(run)
        index = bisect_left(self._firsts, run.first)
        self._firsts.insert(index, run.first)
        self._batches.insert(index, batch)
        return batch
