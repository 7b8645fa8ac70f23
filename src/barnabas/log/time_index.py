"""The sparse time index of a segment: from a timestamp to the offset where a search begins.

    .timeindex: 12 bytes an entry, ascending in timestamp, big-endian
        0  8  the largest timestamp in the segment so far
        8  4  last offset of that timestamp's batch, minus the segment's base offset

An entry says: no record at or before its offset is younger than its timestamp. So the first record at or after a wanted time lies
behind the last entry with a smaller timestamp. When a segment is sealed its largest timestamp gets a last entry, so that
retention by time reads 12 bytes per segment.

`index_file` says how the file is written and sealed, and what a crash can do to it. A reader of an entry checks that the
batch it names has its timestamp, and scans from the segment's start if not. A sealed segment is rebuilt if its tail has a
larger timestamp than its last entry.

Source: Kafka's `TimeIndex`.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from bisect import bisect_left

from barnabas.log.index_file import IndexFile
from barnabas.records.record_batch import NO_TIMESTAMP

ENTRY = struct.Struct(">qI")
ENTRY_SIZE = ENTRY.size


class TimeIndex(IndexFile):
    """The time index of one segment."""

    __slots__ = ("_timestamps",)

    _format = ENTRY
    _timestamps: array[int]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is larger than all before, as Kafka does."""
        assert self._sealed_entries is None, "a sealed index takes no entries"
        timestamps = self._timestamps
        if timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            timestamps.append(timestamp)
            self._relative_offsets.append(offset - self.base_offset)

    def last_entry(self) -> tuple[int, int]:
        """Return timestamp and offset of the last entry; (-1, base offset) of an empty index."""
        if self._sealed_entries is None:
            if not self._timestamps:
                return NO_TIMESTAMP, self.base_offset
            return self._timestamps[-1], self.base_offset + self._relative_offsets[-1]
        return self._last_in_file() or (NO_TIMESTAMP, self.base_offset)

    def last_before(self, timestamp: int) -> tuple[int, int] | None:
        """Return timestamp and offset of the last entry below `timestamp`: all records up to that offset are older."""
        if self._sealed_entries is None:
            slot = bisect_left(self._timestamps, timestamp)
            if not slot:
                return None
            return self._timestamps[slot - 1], self.base_offset + self._relative_offsets[slot - 1]
        return self._search_file(timestamp - 1, 0)

    def is_sane(self) -> bool:
        """Return whether the last entry has a timestamp; Kafka writes no entry without one."""
        return not self.entries or self.last_entry()[0] >= 0

    def _columns(self) -> tuple[array[int], array[int]]:
        return self._timestamps, self._relative_offsets

    def _empty_columns(self) -> None:
        self._timestamps = array("q")
        self._relative_offsets = array("I")

    def _decode(self, data: bytes) -> bool:
        timestamps = array("q")
        relative_offsets = array("I")
        previous, previous_relative = NO_TIMESTAMP, -1
        for timestamp, relative in ENTRY.iter_unpack(data):
            if timestamp <= previous or relative < previous_relative:
                return False
            timestamps.append(timestamp)
            relative_offsets.append(relative)
            previous, previous_relative = timestamp, relative
        self._timestamps = timestamps
        self._relative_offsets = relative_offsets
        return True

    def _encode(self, start: int) -> bytes:
        entries = zip(self._timestamps[start:], self._relative_offsets[start:], strict=True)
        return b"".join(itertools.starmap(ENTRY.pack, entries))

    def _absolute(self, first: int, second: int) -> tuple[int, int]:
        return first, self.base_offset + second
