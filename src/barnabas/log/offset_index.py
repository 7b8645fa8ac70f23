"""The sparse offset index of a segment: from an offset to a file position at or before its batch.

    .index: 8 bytes an entry, ascending, big-endian
        0  4  offset of the batch's LAST record, minus the segment's base offset
        4  4  position of that batch's first byte in the .log

The last offset, not the first: the largest entry at or below a wanted offset then points to a batch that starts at or
before it, and a scan forward from there finds it.

`index_file` says how the file is written and sealed, and what a crash can do to it.

Source: Kafka's `OffsetIndex`.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from bisect import bisect_right

from barnabas.log.index_file import IndexFile

ENTRY = struct.Struct(">II")
ENTRY_SIZE = ENTRY.size

Entry = tuple[int, int]
"""Last offset and position of a batch."""


class OffsetIndex(IndexFile):
    """The offset index of one segment."""

    __slots__ = ("_positions",)

    _format = ENTRY
    _positions: array[int]

    def append(self, last_offset: int, position: int) -> None:
        """Add the batch at `position` whose last record is `last_offset`; both must ascend."""
        relative = last_offset - self.base_offset
        assert self._sealed_entries is None, "a sealed index takes no entries"
        assert not self._relative_offsets or relative > self._relative_offsets[-1], "offsets must ascend"
        self._relative_offsets.append(relative)
        self._positions.append(position)

    def lookup(self, offset: int) -> Entry | None:
        """Return the largest entry at or below `offset`; None if the search must begin at the segment's start."""
        relative = offset - self.base_offset
        if relative < 0:
            return None
        if self._sealed_entries is None:
            slot = bisect_right(self._relative_offsets, relative)
            return self._entry(slot - 1) if slot else None
        return self._search_file(relative, 0)

    def last_at_or_below_position(self, position: int) -> Entry | None:
        """Return the last entry whose position is at most `position`, None if every entry lies behind it. A batch begins at the entry."""
        if self._sealed_entries is None:
            slot = bisect_right(self._positions, position)
            return self._entry(slot - 1) if slot else None
        return self._search_file(position, 1)

    def _entry(self, slot: int) -> Entry:
        return self.base_offset + self._relative_offsets[slot], self._positions[slot]

    def last_entry(self) -> Entry | None:
        """Return offset and position of the last entry, None if the index is empty."""
        if self._sealed_entries is None:
            return self._entry(-1) if self._positions else None
        return self._last_in_file()

    def is_sane(self) -> bool:
        """Return whether the last entry lies behind the base offset; a sole entry may lie at it. Kafka's check."""
        last = self.last_entry()
        return last is None or last[0] > self.base_offset or (last[0] == self.base_offset and self.entries == 1)

    def _columns(self) -> tuple[array[int], array[int]]:
        return self._relative_offsets, self._positions

    def _empty_columns(self) -> None:
        self._relative_offsets = array("I")
        self._positions = array("I")

    def _decode(self, data: bytes) -> bool:
        values = struct.unpack(f">{len(data) // 4}I", data)
        relative = values[0::2]
        positions = values[1::2]
        if any(b <= a for a, b in itertools.pairwise(relative)):
            return False
        if any(b <= a for a, b in itertools.pairwise(positions)):
            return False
        self._relative_offsets = array("I", relative)
        self._positions = array("I", positions)
        return True

    def _encode(self, start: int) -> bytes:
        pairs = array("I", bytes(ENTRY_SIZE * (len(self._positions) - start)))
        pairs[0::2] = self._relative_offsets[start:]
        pairs[1::2] = self._positions[start:]
        return struct.pack(f">{len(pairs)}I", *pairs)

    def _absolute(self, first: int, second: int) -> Entry:
        return self.base_offset + first, second
