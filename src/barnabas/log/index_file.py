"""The common part of a segment's offset index and time index: two columns in memory, then a file.

    entry 0 | entry 1 | …       all of one size, ascending, one of the two fields an offset minus the segment's base offset

Writing is lazy. The active segment's entries live in two arrays in memory; `write_pending` appends the new ones to the
file every few seconds, when the segment is rolled and when the log is closed. A sealed segment's index is not in
memory: a search reads a few entries from the file, so that retained data costs no memory.

A subclass keeps its columns, the bytes of an entry, and the look-ups in memory, which every append and fetch calls. This class
does the work on files.

Crash argument. The file is a function of the `.log`, and the log can be read without it:

- Missing, cut at any byte, or shorter than the log: missing entries only lengthen a scan.
- After an unclean stop, recovery rebuilds the indexes of the segments from the recovery point on; those of older segments
  were written and synced before the recovery point moved past them.
- A size that is not a multiple of the entry's, an entry that does not ascend, or a last entry that does not fit the segment fails
  `load` or `is_sane`, or the check of the log's tail that follows, and the index is rebuilt.
- A rotten entry in the middle can only misdirect a search. A reader of an entry checks that the batch it names fits it, and
  scans from the segment's start if not.

Apache Kafka preallocates the active index to segment.index.bytes and leaves zeros behind after a kill; they do not
ascend, so such a file is rebuilt too. Source: Kafka's `AbstractIndex`.
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

    A subclass adds the second column and the layout of entries in the file.
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

    # Defined by subclasses

    @abstractmethod
    def is_sane(self) -> bool:
        """Return whether this segment can have such a last entry; an index without entries is sane."""

    @abstractmethod
    def _columns(self) -> tuple[array[int], array[int]]:
        """Return both columns, in the file's order."""

    @abstractmethod
    def _empty_columns(self) -> None:
        """Replace the columns by empty ones."""

    @abstractmethod
    def _decode(self, data: bytes) -> bool:
        """Fill the columns from whole entries; return False, and leave them as they are, if the entries do not ascend."""

    @abstractmethod
    def _encode(self, start: int) -> bytes:
        """Return the entries from slot `start` on, as the file has them."""

    @abstractmethod
    def _absolute(self, first: int, second: int) -> tuple[int, int]:
        """Return an entry of the file with an absolute offset."""

    # From the file

    def load(self) -> bool:
        """Read the whole file into memory; return False, and leave the index empty, if it is missing or not sane."""
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
        """Use the file as it is, without reading its entries; return whether it is plausible (`is_sane`)."""
        self.clear_memory()
        try:
            size = self._disk.file_size(self.path)
        except FileNotFoundError:
            return False
        self._sealed_entries = size // self._format.size
        return size % self._format.size == 0 and self.is_sane()

    def _last_in_file(self) -> tuple[int, int] | None:
        """Return the last entry of a sealed index, None if it has none."""
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
        """Return the last entry of a sealed index whose field, 0 or 1 and as the file has it, is at most `wanted`."""
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

    # To the file

    def create(self) -> None:
        """Create the empty file, and replace an older one: Kafka's tools expect one next to every `.log`."""
        file = self._disk.open(self.path, create=True)
        try:
            if file.size():
                file.truncate(0)
        finally:
            file.close()

    def write_pending(self) -> bool:
        """Append the entries that the file lacks; return whether there were any. The caller syncs the file."""
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
        """Write the pending entries and drop the columns; an empty index leaves an empty file, as Kafka does."""
        if self._sealed_entries is not None:
            return
        self.write_pending()
        if not self._written and not self._disk.exists(self.path):
            self._disk.open(self.path, create=True).close()
        self._sealed_entries = self._written
        self._empty_columns()

    def truncate_to(self, offset: int) -> None:
        """Drop every entry at or above `offset`, in memory and in the file; unseal the index."""
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
        """Empty the index and its file, to be rebuilt."""
        self.clear_memory()
        try:
            is_empty = not self._disk.file_size(self.path)
        except FileNotFoundError:
            return
        if not is_empty:
            self._truncate_file(0)

    def clear_memory(self) -> None:
        """Empty the index, and leave the file as it is."""
        self._empty_columns()
        self._written = 0
        self._sealed_entries = None

    def _truncate_file(self, entries: int) -> None:
        file = self._disk.open(self.path)
        try:
            file.truncate(entries * self._format.size)
        finally:
            file.close()
