"""The sparse offset index of a segment: from an offset to a file position at or before its batch (data plane).

    .index: 8 bytes an entry, ascending, big-endian
        0  4  offset of the batch's LAST record, minus the segment's base offset
        4  4  position of that batch's first byte in the .log

The last offset, not the first: the largest entry at or below a wanted offset then points to a batch that starts at or
before it, and a scan forward from there finds it.

Writing is lazy. The active segment's entries live in two arrays in memory; `write_pending` appends the new ones to the
file when the segment is rolled or the log is closed. A sealed segment's index is dropped from memory and searched in the file
with a few reads of eight bytes, so that retained data costs no memory.

Crash argument. The file is a function of the `.log` and is never needed to find out what the log holds:

- Missing, cut at any byte, or shorter than the log: entries that are absent only lengthen a scan.
- After an unclean stop, segments from the recovery point on have the index rebuilt from the `.log`; older segments had
  theirs written and synced before the recovery point moved past them.
- A size that is no multiple of 8, an entry that does not ascend, or a last entry that does not point at the batch it names fails
  `is_sane`, or the look at the log's tail that follows, and the index is rebuilt.
- An entry in the middle whose bytes have rotted can only misdirect a search. Whoever uses an entry looks whether the
  batch it names lies where it says, and scans from the segment's start if not.

Apache Kafka preallocates the active index to segment.index.bytes and leaves zeros behind after a kill; they do not
ascend, so such a file is rebuilt as well. Source: Kafka's `OffsetIndex`, `AbstractIndex`.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from bisect import bisect_right

from barnabas.log.disk import Disk, write_fully

ENTRY = struct.Struct(">II")
ENTRY_SIZE = ENTRY.size

Entry = tuple[int, int]
"""Last offset and position of a batch."""


class OffsetIndex:
    """The offset index of one segment."""

    __slots__ = ("_disk", "_positions", "_relative_offsets", "_sealed_entries", "_written", "base_offset", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._relative_offsets = array("I")
        self._positions = array("I")
        # How many entries the file already holds.
        self._written = 0
        # Not None once sealed: the number of entries, all of them in the file only.
        self._sealed_entries: int | None = None

    def __repr__(self) -> str:
        return f"<OffsetIndex base={self.base_offset} entries={self.entries}>"

    @property
    def entries(self) -> int:
        return len(self._positions) if self._sealed_entries is None else self._sealed_entries

    @property
    def is_sealed(self) -> bool:
        return self._sealed_entries is not None

    def append(self, last_offset: int, position: int) -> None:
        """Adds the batch at `position` whose last record is `last_offset`; ascending, or an assertion fails."""
        relative = last_offset - self.base_offset
        assert self._sealed_entries is None, "a sealed index takes no entries"
        assert not self._relative_offsets or relative > self._relative_offsets[-1], "offsets must ascend"
        self._relative_offsets.append(relative)
        self._positions.append(position)

    def lookup(self, offset: int) -> Entry | None:
        """The largest entry at or below `offset`; None when the search must begin at the segment's start."""
        relative = offset - self.base_offset
        if relative < 0:
            return None
        if self._sealed_entries is None:
            slot = bisect_right(self._relative_offsets, relative)
            return self._entry(slot - 1) if slot else None
        return self._search_file(relative, 0)

    def last_at_or_below_position(self, position: int) -> Entry | None:
        """The last entry whose position is at most `position`: a place where a batch begins."""
        if self._sealed_entries is None:
            slot = bisect_right(self._positions, position)
            return self._entry(slot - 1) if slot else None
        return self._search_file(position, 1)

    def _entry(self, slot: int) -> Entry:
        return self.base_offset + self._relative_offsets[slot], self._positions[slot]

    def last_entry(self) -> Entry | None:
        """Offset and position of the last entry."""
        if self._sealed_entries is None:
            if not self._positions:
                return None
            return self.base_offset + self._relative_offsets[-1], self._positions[-1]
        if not self._sealed_entries:
            return None
        file = self._disk.open(self.path)
        try:
            relative, position = ENTRY.unpack(file.pread(ENTRY_SIZE, (self._sealed_entries - 1) * ENTRY_SIZE))
        finally:
            file.close()
        return self.base_offset + relative, position

    def _search_file(self, wanted: int, field: int) -> Entry | None:
        """The last entry whose field (0: relative offset, 1: position) is at most `wanted`."""
        assert self._sealed_entries is not None
        found: Entry | None = None
        if not self._sealed_entries:
            return found
        file = self._disk.open(self.path)
        try:
            low, high = 0, self._sealed_entries
            while low < high:
                middle = (low + high) // 2
                raw = file.pread(ENTRY_SIZE, middle * ENTRY_SIZE)
                if len(raw) < ENTRY_SIZE:
                    high = middle
                    continue
                entry = ENTRY.unpack(raw)
                if entry[field] <= wanted:
                    found = self.base_offset + entry[0], entry[1]
                    low = middle + 1
                else:
                    high = middle
        finally:
            file.close()
        return found

    def write_pending(self) -> bool:
        """Appends the entries the file lacks; returns whether it wrote. The caller syncs the file."""
        count = len(self._positions)
        if self._sealed_entries is not None or self._written == count:
            return False
        pairs = array("I", bytes(ENTRY_SIZE * (count - self._written)))
        pairs[0::2] = self._relative_offsets[self._written :]
        pairs[1::2] = self._positions[self._written :]
        data = struct.pack(f">{len(pairs)}I", *pairs)
        file = self._disk.open(self.path, create=True)
        try:
            start = self._written * ENTRY_SIZE
            if file.size() > start:
                file.truncate(start)
            write_fully(file, data, start)
        finally:
            file.close()
        self._written = count
        return True

    def create(self) -> None:
        """Creates the empty file, replacing what a former life may have left: Kafka's tools want one beside every `.log`."""
        file = self._disk.open(self.path, create=True)
        try:
            if file.size():
                file.truncate(0)
        finally:
            file.close()

    def seal(self) -> None:
        """Writes what is pending and drops the arrays; an empty index leaves an empty file, as Kafka's does."""
        if self._sealed_entries is not None:
            return
        self.write_pending()
        if not self._written and not self._disk.exists(self.path):
            self._disk.open(self.path, create=True).close()
        self._sealed_entries = self._written
        self._relative_offsets = array("I")
        self._positions = array("I")

    def load(self) -> bool:
        """Reads the whole file into memory; returns False, leaving the index empty, when it is missing or not sane."""
        self.clear_memory()
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return False
        if len(data) % ENTRY_SIZE:
            return False
        values = struct.unpack(f">{len(data) // 4}I", data)
        relative = values[0::2]
        positions = values[1::2]
        if any(b <= a for a, b in itertools.pairwise(relative)):
            return False
        if any(b <= a for a, b in itertools.pairwise(positions)):
            return False
        self._relative_offsets = array("I", relative)
        self._positions = array("I", positions)
        self._written = len(relative)
        return True

    def open_sealed(self) -> bool:
        """Takes the file as it is, without reading its entries; returns whether it is plausible (`is_sane`)."""
        self.clear_memory()
        try:
            size = self._disk.file_size(self.path)
        except FileNotFoundError:
            return False
        self._sealed_entries = size // ENTRY_SIZE
        return size % ENTRY_SIZE == 0 and self.is_sane()

    def is_sane(self) -> bool:
        """Kafka's sanity check: the last entry lies at or after the base offset, and not before the first entry."""
        last = self.last_entry()
        return last is None or last[0] > self.base_offset or (last[0] == self.base_offset and self.entries == 1)

    def truncate_to(self, offset: int) -> None:
        """Drops every entry at or above `offset`, in memory and in the file; unseals the index."""
        if self._sealed_entries is not None and not self.load():
            self.reset()
            return
        slot = bisect_right(self._relative_offsets, offset - self.base_offset - 1)
        del self._relative_offsets[slot:]
        del self._positions[slot:]
        if self._written > slot:
            file = self._disk.open(self.path)
            try:
                file.truncate(slot * ENTRY_SIZE)
            finally:
                file.close()
            self._written = slot

    def reset(self) -> None:
        """Empties the index and its file, to be rebuilt."""
        self.clear_memory()
        if self._disk.exists(self.path):
            file = self._disk.open(self.path)
            try:
                file.truncate(0)
            finally:
                file.close()

    def clear_memory(self) -> None:
        self._relative_offsets = array("I")
        self._positions = array("I")
        self._written = 0
        self._sealed_entries = None
