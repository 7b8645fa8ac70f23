"""What a segment's offset index and time index have in common: two columns in memory, then a file (data plane).

    entry 0 | entry 1 | …       all of one size, ascending, one of the two fields an offset minus the segment's base offset

Writing is lazy. The active segment's entries live in two arrays in memory; `write_pending` appends the new ones to the
file every few seconds, when the segment is rolled and when the log is closed. A sealed segment's index is dropped from
memory and searched in the file with a few reads of one entry each, so that retained data costs no memory.

Each index keeps its own columns, the bytes of an entry, and the look-ups in memory, which are on the way of every append and
fetch and therefore know their columns by name. This class knows the columns only where a file is near.

Crash argument. The file is a function of the `.log` and is never needed to find out what the log holds:

- Missing, cut at any byte, or shorter than the log: entries that are absent only lengthen a scan.
- After an unclean stop, segments from the recovery point on have the index rebuilt from the `.log`; older segments had
  theirs written and synced before the recovery point moved past them.
- A size that is no multiple of the entry's, an entry that does not ascend, or a last entry that does not fit the segment fails
  `load` or `is_sane`, or the look at the log's tail that follows, and the index is rebuilt.
- An entry in the middle whose bytes have rotted can only misdirect a search. Whoever uses an entry looks whether the
  batch it names is what it says, and scans from the segment's start if not.

Apache Kafka preallocates the active index to segment.index.bytes and leaves zeros behind after a kill; they do not
ascend, so such a file is rebuilt as well. Source: Kafka's `AbstractIndex`.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from typing import ClassVar

from barnabas.log.disk import Disk, write_fully


class IndexFile(ABC):
    """A sparse index of one segment, with entries of two integers.

    A subclass adds the column beside the relative offsets and says how entries look in the file.
    """

    __slots__ = ("_disk", "_relative_offsets", "_sealed_entries", "_written", "base_offset", "path")

    _format: ClassVar[struct.Struct]
    """One entry in the file: two integers."""

    _relative_offsets: array[int]
    _written: int
    """How many entries the file already holds."""
    _sealed_entries: int | None
    """Not None once sealed: the number of entries, all of them in the file only."""

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self.clear_memory()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} base={self.base_offset} entries={self.entries}>"

    @property
    def entries(self) -> int:
        return len(self._relative_offsets) if self._sealed_entries is None else self._sealed_entries

    @property
    def is_sealed(self) -> bool:
        return self._sealed_entries is not None

    # --- what differs ---------------------------------------------------------------------------------------------

    @abstractmethod
    def is_sane(self) -> bool:
        """Whether the last entry is one this segment can have; an index without entries is sane."""

    @abstractmethod
    def _columns(self) -> tuple[array[int], array[int]]:
        """Both columns, in the file's order."""

    @abstractmethod
    def _empty_columns(self) -> None:
        """Takes new, empty columns."""

    @abstractmethod
    def _decode(self, data: bytes) -> bool:
        """Fills the columns from whole entries; returns False, leaving them as they are, when the entries do not ascend."""

    @abstractmethod
    def _encode(self, start: int) -> bytes:
        """The entries from slot `start` on, as the file has them."""

    @abstractmethod
    def _absolute(self, first: int, second: int) -> tuple[int, int]:
        """An entry of the file, with its relative offset made an offset."""

    # --- from the file --------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Reads the whole file into memory; returns False, leaving the index empty, when it is missing or not sane."""
        self.clear_memory()
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return False
        if len(data) % self._format.size or not self._decode(data):
            return False
        self._written = len(self._relative_offsets)
        return True

    def open_sealed(self) -> bool:
        """Takes the file as it is, without reading its entries; returns whether it is plausible (`is_sane`)."""
        self.clear_memory()
        try:
            size = self._disk.file_size(self.path)
        except FileNotFoundError:
            return False
        self._sealed_entries = size // self._format.size
        return size % self._format.size == 0 and self.is_sane()

    def _last_in_file(self) -> tuple[int, int] | None:
        """The last entry of a sealed index; None when it has none."""
        assert self._sealed_entries is not None
        if not self._sealed_entries:
            return None
        size = self._format.size
        file = self._disk.open(self.path)
        try:
            first, second = self._format.unpack(file.pread(size, (self._sealed_entries - 1) * size))
        finally:
            file.close()
        return self._absolute(first, second)

    def _search_file(self, wanted: int, field: int) -> tuple[int, int] | None:
        """The last entry of a sealed index whose field, 0 or 1 and as the file has it, is at most `wanted`."""
        assert self._sealed_entries is not None
        if not self._sealed_entries:
            return None
        size = self._format.size
        found: tuple[int, int] | None = None
        file = self._disk.open(self.path)
        try:
            low, high = 0, self._sealed_entries
            while low < high:
                middle = (low + high) // 2
                raw = file.pread(size, middle * size)
                if len(raw) < size:
                    high = middle
                    continue
                first, second = entry = self._format.unpack(raw)
                if entry[field] <= wanted:
                    found = first, second
                    low = middle + 1
                else:
                    high = middle
        finally:
            file.close()
        return None if found is None else self._absolute(*found)

    # --- to the file ----------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Creates the empty file, replacing what a former life may have left: Kafka's tools want one beside every `.log`."""
        file = self._disk.open(self.path, create=True)
        try:
            if file.size():
                file.truncate(0)
        finally:
            file.close()

    def write_pending(self) -> bool:
        """Appends the entries the file lacks; returns whether it wrote. The caller syncs the file."""
        count = len(self._relative_offsets)
        if self._sealed_entries is not None or self._written == count:
            return False
        data = self._encode(self._written)
        file = self._disk.open(self.path, create=True)
        try:
            start = self._written * self._format.size
            if file.size() > start:
                file.truncate(start)
            write_fully(file, data, start)
        finally:
            file.close()
        self._written = count
        return True

    def seal(self) -> None:
        """Writes what is pending and drops the arrays; an empty index leaves an empty file, as Kafka's does."""
        if self._sealed_entries is not None:
            return
        self.write_pending()
        if not self._written and not self._disk.exists(self.path):
            self._disk.open(self.path, create=True).close()
        self._sealed_entries = self._written
        self._empty_columns()

    def truncate_to(self, offset: int) -> None:
        """Drops every entry at or above `offset`, in memory and in the file; unseals the index."""
        if self._sealed_entries is not None and not self.load():
            self.reset()
            return
        slot = bisect_right(self._relative_offsets, offset - self.base_offset - 1)
        for column in self._columns():
            del column[slot:]
        if self._written > slot:
            self._truncate_file(slot)
            self._written = slot

    def reset(self) -> None:
        """Empties the index and its file, to be rebuilt."""
        self.clear_memory()
        try:
            is_empty = not self._disk.file_size(self.path)
        except FileNotFoundError:
            return
        if not is_empty:
            self._truncate_file(0)

    def clear_memory(self) -> None:
        """Empties the index, and leaves the file as it is."""
        self._empty_columns()
        self._written = 0
        self._sealed_entries = None

    def _truncate_file(self, entries: int) -> None:
        file = self._disk.open(self.path)
        try:
            file.truncate(entries * self._format.size)
        finally:
            file.close()
