"""The segments of one log in order.

    bases      0          4711        9020
    segments   | 0..4710  | 4711..9019 | 9020..   active, the only one written to

Invariants: at least one segment; base offsets ascend; every segment but the active one is sealed. An offset belongs to the last
segment whose base is at or below it. Source: Kafka's `LogSegments`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from barnabas.log.errors import reading
from barnabas.log.log_segment import LogSegment
from barnabas.log.transaction_index import AbortedTransaction


class LogSegments:
    """An ordered list of segments with their base offsets beside it, for bisection."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: list[LogSegment]) -> None:
        assert segments, "a log has at least one segment"
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __repr__(self) -> str:
        return f"<LogSegments {self._bases}>"

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    @property
    def first_base_offset(self) -> int:
        return self._bases[0]

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def slot(self, offset: int) -> int:
        """Return the index of the segment that an offset belongs to; -1 if the offset is below the first."""
        return bisect_right(self._bases, offset) - 1

    def at(self, slot: int) -> LogSegment:
        return self._segments[slot]

    def starting_with(self, offset: int) -> list[LogSegment]:
        """Return the segment that an offset belongs to and all later ones."""
        return self._segments[max(self.slot(offset), 0) :]

    def find(self, bases: list[int]) -> list[LogSegment] | None:
        """Return the sealed segments with these base offsets; None if they are not all there, in a row."""
        start = self.slot(bases[0])
        found = self._segments[max(start, 0) : max(start, 0) + len(bases)]
        if [segment.base_offset for segment in found] != bases or found[-1] is self.active:
            return None
        return found

    def end_of(self, slot: int, log_end_offset: int) -> int:
        """Return the offset after the last one that belongs to a segment."""
        return self._bases[slot + 1] if slot + 1 < len(self._bases) else log_end_offset

    @reading()
    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap the offsets from `start` up to but without `end`, by last offset.

        Raises:
            KafkaStorageError: the disk failed.
        """
        found: list[AbortedTransaction] = []
        for segment in self.starting_with(start):
            for entry in segment.transaction_index.ending_at_or_after(start):
                if entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return found
        return found

    def add(self, segment: LogSegment) -> None:
        """Make a segment the active one."""
        assert segment.base_offset > self._bases[-1], "base offsets ascend"
        self._segments.append(segment)
        self._bases.append(segment.base_offset)
        self.active = segment

    def pop_active(self) -> LogSegment:
        """Remove and return the active segment; the one before it becomes active."""
        assert len(self._segments) > 1, "a log has at least one segment"
        self._bases.pop()
        last = self._segments.pop()
        self.active = self._segments[-1]
        return last

    def pop_first(self, count: int) -> list[LogSegment]:
        """Remove and return the oldest segments."""
        assert count < len(self._segments), "a log has at least one segment"
        gone = self._segments[:count]
        del self._segments[:count]
        del self._bases[:count]
        return gone

    def replace(self, old: list[LogSegment], new: LogSegment) -> None:
        """Replace some neighbours, none of them active, by one segment."""
        start = self._bases.index(old[0].base_offset)
        assert self._segments[start : start + len(old)] == old, "the segments are still there, in a row"
        assert old[-1] is not self.active, "the active segment is never replaced"
        self._segments[start : start + len(old)] = [new]
        self._bases[start : start + len(old)] = [new.base_offset]

    def replace_all(self, segment: LogSegment) -> None:
        """Make a segment the only one."""
        self._segments[:] = [segment]
        self._bases[:] = [segment.base_offset]
        self.active = segment
