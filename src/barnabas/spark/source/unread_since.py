"""Since when a partition has records that a query has not read.

A report has offsets and no times of records, so this remembers when each end of the partition was first seen: the
oldest unread record was there when an end beyond it was first seen.

- The answer is late by at most the time between two reports, and never early.
- It begins with the first report: records that were there before count from then on.
- Memory is bounded: of many remembered ends, every second one is forgotten, and the answer is later by their distance.
"""

from __future__ import annotations

__all__ = ["UnreadSince"]

_MOST_ENDS = 512


class UnreadSince:
    """The ends of one partition, with the time at which each was first seen."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, float]] = []

    def __repr__(self) -> str:
        return f"<UnreadSince ends={len(self._ends)}>"

    def observe(self, read: int, end: int, now_s: float) -> float | None:
        """Take a report; return since when there have been unread records, None if there are none.

        Args:
            read: the offset before which the query has read everything.
            end: the partition's end. A log that was cut ends before a remembered end.
        """
        self._ends = [each for each in self._ends if read < each[0] <= end]
        if end > read and (not self._ends or end > self._ends[-1][0]):
            self._ends.append((end, now_s))
            if len(self._ends) > _MOST_ENDS:
                self._ends = self._ends[::2]
        return self._ends[0][1] if self._ends else None
