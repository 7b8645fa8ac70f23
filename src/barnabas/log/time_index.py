"""The sparse time index of a segment: from a timestamp to an offset worth looking from (data plane).

    .timeindex: 12 bytes an entry, ascending in timestamp, big-endian
        0  8  the largest timestamp in the segment so far
        8  4  last offset of the batch that holds it, minus the segment's base offset

An entry says: no record at or before its offset is younger than its timestamp. The first record at or after a wanted time therefore lies
after the last entry that is smaller than it. When a segment is sealed its largest timestamp gets a last entry, so that
retention by time reads 12 bytes per segment.

Writing is lazy, sealing drops the memory, and the crash argument is that of `offset_index`: the file is a function of
the `.log`, and whoever uses an entry looks whether the batch it names has its timestamp, and scans from the segment's
start if not. A sealed segment whose last entry is not its largest timestamp, as far as its tail shows, is rebuilt.

Source: Kafka's `TimeIndex`.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

from barnabas.log.disk import Disk, write_fully

ENTRY = struct.Struct(">qI")
ENTRY_SIZE = ENTRY.size
NO_TIMESTAMP = -1


class TimeIndex:
    """The time index of one segment."""

    __slots__ = ("_disk", "_relative_offsets", "_sealed_entries", "_timestamps", "_written", "base_offset", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._relative_offsets = array("I")
        self._written = 0
        self._sealed_entries: int | None = None

    def __repr__(self) -> str:
        return f"<TimeIndex base={self.base_offset} entries={self.entries}>"

    @property
    def entries(self) -> int:
        return len(self._timestamps) if self._sealed_entries is None else self._sealed_entries

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry when `timestamp` is larger than all before; otherwise does nothing, as Kafka's does."""
        assert self._sealed_entries is None, "a sealed index takes no entries"
        timestamps = self._timestamps
        if timestamp > (timestamps[-1] if timestamps else NO_TIMESTAMP):
            timestamps.append(timestamp)
            self._relative_offsets.append(offset - self.base_offset)

    def last_entry(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (-1, base offset) of an empty index."""
        if self._sealed_entries is None:
            if not self._timestamps:
                return NO_TIMESTAMP, self.base_offset
            return self._timestamps[-1], self.base_offset + self._relative_offsets[-1]
        if not self._sealed_entries:
            return NO_TIMESTAMP, self.base_offset
        file = self._disk.open(self.path)
        try:
            timestamp, relative = ENTRY.unpack(file.pread(ENTRY_SIZE, (self._sealed_entries - 1) * ENTRY_SIZE))
        finally:
            file.close()
        return timestamp, self.base_offset + relative

    def last_before(self, timestamp: int) -> tuple[int, int] | None:
        """Timestamp and offset of the last entry below `timestamp`: records up to that offset are all older."""
        if self._sealed_entries is None:
            slot = bisect_left(self._timestamps, timestamp)
            if not slot:
                return None
            return self._timestamps[slot - 1], self.base_offset + self._relative_offsets[slot - 1]
        found: tuple[int, int] | None = None
        file = self._disk.open(self.path)
        try:
            low, high = 0, self._sealed_entries
            while low < high:
                middle = (low + high) // 2
                raw = file.pread(ENTRY_SIZE, middle * ENTRY_SIZE)
                if len(raw) < ENTRY_SIZE:
                    high = middle
                    continue
                entry_timestamp, relative = ENTRY.unpack(raw)
                if entry_timestamp < timestamp:
                    found = entry_timestamp, self.base_offset + relative
                    low = middle + 1
                else:
                    high = middle
        finally:
            file.close()
        return found

    def write_pending(self) -> bool:
        """Appends the entries the file lacks; returns whether it wrote. The caller syncs the file."""
        count = len(self._timestamps)
        if self._sealed_entries is not None or self._written == count:
            return False
        pack = ENTRY.pack
        data = b"".join(
            pack(timestamp, relative)
            for timestamp, relative in zip(
                self._timestamps[self._written :], self._relative_offsets[self._written :], strict=True
            )
        )
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
        """Writes what is pending and drops the arrays."""
        if self._sealed_entries is not None:
            return
        self.write_pending()
        if not self._written and not self._disk.exists(self.path):
            self._disk.open(self.path, create=True).close()
        self._sealed_entries = self._written
        self._timestamps = array("q")
        self._relative_offsets = array("I")

    def load(self) -> bool:
        """Reads the whole file into memory; returns False, leaving the index empty, when it is missing or not sane."""
        self.clear_memory()
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return False
        if len(data) % ENTRY_SIZE:
            return False
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
        self._written = len(timestamps)
        return True

    def open_sealed(self) -> bool:
        """Takes the file as it is, without reading its entries; returns whether it is plausible."""
        self.clear_memory()
        try:
            size = self._disk.file_size(self.path)
        except FileNotFoundError:
            return False
        self._sealed_entries = size // ENTRY_SIZE
        return size % ENTRY_SIZE == 0 and (not size or self.last_entry()[0] >= 0)

    def truncate_to(self, offset: int) -> None:
        """Drops every entry at or above `offset`, in memory and in the file; unseals the index."""
        if self._sealed_entries is not None and not self.load():
            self.reset()
            return
        slot = bisect_right(self._relative_offsets, offset - self.base_offset - 1)
        del self._timestamps[slot:]
        del self._relative_offsets[slot:]
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
        self._timestamps = array("q")
        self._relative_offsets = array("I")
        self._written = 0
        self._sealed_entries = None
