"""One segment of a log: a `.log` file of whole batches with its indexes.

    0                                                                             size
    | batch | batch | batch | …                                          | batch |
      ^ position 0            ^ an index entry every index.interval.bytes

- Batches are written with one `pwrite` at `size`; `size` moves only when the disk took all bytes. A failed or short write is
  cut off again. If that fails too, the segment rejects writes until it succeeds, so that the rest of an older write
  can never follow a younger one.
- `max_timestamp` and the last offset of its batch are kept for the time index, rolling and retention.
- The `.log` file is opened on first use, and `OpenFiles` may close it at any time; `OpenFiles` says how long a handle is good.
- A sealed segment (every segment but the last) has its indexes in files only.

Crash argument for `.log`: the bytes beyond the last sync may be missing, torn or garbage, in any order. Recovery reads from the
recovery point's segment on and keeps batches while length, magic, CRC and ascending offsets hold; it cuts off the rest.
Synced bytes lie before the recovery point, or in front of the first bad batch, and stay.

Source: Kafka's `LogSegment`, `FileRecords`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from barnabas.log import log_files
from barnabas.log.disk import Buffer, Disk, DiskFile, write_fully
from barnabas.log.errors import KafkaStorageError
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.open_files import OpenedFile, OpenFiles
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import TransactionIndex
from barnabas.records.errors import CorruptRecord, RecordError
from barnabas.records.record_batch import (
    BATCH_OVERHEAD,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    check_batch,
    length_and_magic,
    read_header,
)

HEADER_CHUNK = 4096
"""One read of this many bytes sees every header up to the next index entry when batches are small."""

SCAN_CHUNK = 1 << 20
RELATIVE_OFFSET_MAX = 2**31 - 1
REMEMBERED_POSITIONS = 64


class LogSegment(OpenedFile):
    """One segment."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_disk",
        "_file",
        "_open_files",
        "_positions",
        "base_offset",
        "before_write",
        "created_ms",
        "first_timestamp",
        "index_interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "path",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        disk: Disk,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        created_ms: int,
        size: int = 0,
        suffix: str = "",
    ) -> None:
        """
        Args:
            suffix: behind every file's name, for a segment that is not in use yet: `.cleaned`, `.swap`.
        """
        super().__init__()
        stem = f"{directory}/{base_offset:020d}"
        self._disk = disk
        self._open_files = open_files
        self.base_offset = base_offset
        self.path = stem + log_files.LOG + suffix
        self.size = size
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self.offset_index = OffsetIndex(disk, stem + log_files.INDEX + suffix, base_offset)
        self.time_index = TimeIndex(disk, stem + log_files.TIME_INDEX + suffix, base_offset)
        self.transaction_index = TransactionIndex(disk, stem + log_files.TRANSACTION_INDEX + suffix)
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        # Timestamp of the first batch, from which segment.ms counts; None until it is known.
        self.first_timestamp: int | None = None
        self._file: DiskFile | None = None
        # A repair that has to succeed before the next write; it is called once.
        self.before_write: Callable[[], None] | None = None
        self._bytes_since_index_entry = 0
        # Offsets whose position is known because a read or a write ended there.
        self._positions: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<LogSegment base={self.base_offset} size={self.size}>"

    # Files

    def file(self) -> DiskFile:
        """Return the open `.log`; good until control returns to the event loop."""
        self.recently_used = True
        return self._file or self._open(create=False)

    def create(self) -> None:
        """Create the empty `.log` and indexes, and replace older files of these names."""
        file = self._open(create=True)
        if file.size():
            file.truncate(0)
        self.offset_index.create()
        self.time_index.create()

    def _open(self, *, create: bool) -> DiskFile:
        file = self._disk.open(self.path, create=create)
        self._file = file
        self._open_files.opened(self)
        return file

    def close_file(self) -> None:
        """Close the handle; the next use opens the file again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Close the handle and stop counting it among the open files."""
        if self._file is not None:
            self._open_files.closed(self)
            self.close_file()

    def file_paths(self) -> tuple[str, ...]:
        """Return the path of every file that the segment may have."""
        return (self.path, self.offset_index.path, self.time_index.path, self.transaction_index.path)

    def rename_to_deleted(self, tag: str = "") -> tuple[str, ...]:
        """Give every file the suffix `.deleted`, and return the new names; reads that have begun continue.

        Args:
            tag: in front of the suffix. Another segment of this base offset may be deleted before these files are removed.
        """
        self.close()
        suffix = tag + log_files.DELETED
        renamed = []
        for path in self.file_paths():
            with contextlib.suppress(FileNotFoundError):
                self._disk.rename(path, path + suffix)
                renamed.append(path + suffix)
        self.path += suffix
        return tuple(renamed)

    def change_suffix(self, old: str, new: str) -> None:
        """Rename every file of the segment; reads that have begun continue. The caller syncs the directory.

        Raises:
            OSError: the disk failed; some files may have the new name already.
        """
        for holder in (self, self.offset_index, self.time_index, self.transaction_index):
            target = holder.path.removesuffix(old) + new
            with contextlib.suppress(FileNotFoundError):
                self._disk.rename(holder.path, target)
            holder.path = target

    # Writing

    def write(self, data: Buffer) -> int:
        """Append whole batches, and return the position of the first. The caller calls `note_batch` for each.

        Raises:
            KafkaStorageError: the disk took less than all of it; the segment is as before.
        """
        position = self.size
        length = len(data)
        try:
            if self.before_write is not None:
                self.before_write()
                self.before_write = None
            file = self._file or self._open(create=False)
            self.recently_used = True
            written = file.pwrite(data, position)
            if written != length:
                write_fully(file, memoryview(data)[written:], position + written)
        except OSError as error:
            self._cut_back()
            raise KafkaStorageError(f"cannot write to {self.path}: {error.strerror or error}") from error
        self.size = position + length
        return position

    def _cut_back(self) -> None:
        self.before_write = self._cut
        with contextlib.suppress(OSError):
            self._cut()
            self.before_write = None

    def _cut(self) -> None:
        self.file().truncate(self.size)

    def note_batch(self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Account for a batch at `position`: its largest timestamp, and an index entry if one is due."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size
        positions = self._positions
        if len(positions) >= REMEMBERED_POSITIONS:
            positions.clear()
        positions[base_offset] = position

    def seal(self) -> None:
        """End writing: index the last timestamp, and move the indexes from memory to their files."""
        if not self.offset_index.is_sealed:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.offset_index.seal()
        self.time_index.seal()
        self.transaction_index.write_pending()
        self._positions.clear()

    def write_index_entries(self) -> bool:
        """Write the index entries that are only in memory, and return whether there were any; nothing is synced."""
        has_written = [self.offset_index.write_pending(), self.time_index.write_pending()]
        self.transaction_index.write_pending()
        return any(has_written)

    def write_indexes(self) -> None:
        """Write all index entries and the last timestamp, as before a close."""
        if not self.offset_index.is_sealed:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.write_index_entries()

    # Reading

    def remember(self, offset: int, position: int) -> None:
        """Note where `offset` begins, for the next read."""
        positions = self._positions
        if len(positions) >= REMEMBERED_POSITIONS:
            positions.clear()
        positions[offset] = position

    def locate(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is at least `offset`; `size` if every batch ends below it.

        Raises:
            CorruptRecord: the file holds bytes that are not a batch.
        """
        position = self._positions.get(offset)
        if position is not None:
            return position
        entry = self.offset_index.lookup(offset)
        position = None if entry is None else self._scan_to(offset, entry[1], entry[0])
        if position is None:
            position = self._scan_to(offset, 0)
        if position is None:
            raise CorruptRecord(f"{self.path} holds no batch where offset {offset} should be")
        self.remember(offset, position)
        return position

    def _scan_to(self, offset: int, start: int, last_offset: int | None = None) -> int | None:
        """Find the batch of `offset` from `start` on; None if the file is corrupt, or no batch at `start` ends with `last_offset`."""
        size = self.size
        if last_offset is not None and start >= size:
            return None
        file = self.file()
        position = start
        chunk = b""
        chunk_start = position
        unpack_from = HEADER.unpack_from
        while position < size:
            at = position - chunk_start
            if at + BATCH_OVERHEAD > len(chunk):
                chunk = file.pread(HEADER_CHUNK, position)
                chunk_start = position
                at = 0
                if len(chunk) < BATCH_OVERHEAD:
                    return None
            base_offset, length, _, magic, _, _, last_offset_delta, _, _, _, _, _, _ = unpack_from(chunk, at)
            length += LOG_OVERHEAD
            last = base_offset + last_offset_delta
            if magic != MAGIC or length < BATCH_OVERHEAD:
                return None
            if last_offset is not None and position == start and last != last_offset:
                return None
            if last >= offset:
                return position
            position += length
        return size

    def header_at(self, position: int) -> BatchHeader | None:
        """Return the header at `position`; None if the file ends before it."""
        raw = self.file().pread(BATCH_OVERHEAD, position)
        return read_header(raw) if len(raw) == BATCH_OVERHEAD else None

    def end_of_read(self, start: int, limit: int, max_bytes: int, min_one: bool) -> int:
        """Return where a read from `start` ends: between two batches, at most at `limit`, within `max_bytes` if possible."""
        wanted = start + max_bytes
        if wanted >= limit:
            return limit
        entry = self.offset_index.last_at_or_below_position(wanted)
        if entry is not None and entry[1] > start:
            found = self.header_at(entry[1])
            if found is not None and found.magic == MAGIC and found.last_offset == entry[0]:
                self.remember(found.base_offset, entry[1])
                return entry[1]
        position = start
        while True:
            header = self.header_at(position)
            if header is None:
                return position
            following = position + header.size
            if following > wanted:
                break
            position = following
        if position == start and min_one:
            return min(following, limit)
        return position

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of each batch, without a check of the CRC: recovery has made it.

        Raises:
            CorruptRecord: the file holds bytes that are not a batch.
        """
        size = self.size if end is None else end
        position = start
        chunk = b""
        chunk_start = start
        while position + BATCH_OVERHEAD <= size:
            at = position - chunk_start
            if at + BATCH_OVERHEAD > len(chunk):
                chunk = self.file().pread(HEADER_CHUNK, position)
                chunk_start = position
                at = 0
                if len(chunk) < BATCH_OVERHEAD:
                    return
            header = read_header(chunk, at)
            if header.magic != MAGIC or header.size < BATCH_OVERHEAD:
                raise CorruptRecord(f"{self.path} holds no batch at position {position}")
            yield position, header
            position += header.size

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """Return the bytes of one batch."""
        return self.file().pread(header.size, position)

    def checked_batches(
        self, start: int = 0, *, end_offset: int | None = None
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Check each batch from `start` and yield it with its bytes; end at the first bad batch.

        A batch that reaches `end_offset`, where the next segment begins, is bad too. The view is good until the
        next step.
        """
        file = self.file()
        size = file.size()
        position = start
        chunk = memoryview(b"")
        chunk_start = start
        previous_last = -1
        while position < size:
            at = position - chunk_start
            if at + BATCH_OVERHEAD > len(chunk):
                chunk, chunk_start, at = memoryview(file.pread(SCAN_CHUNK, position)), position, 0
                if len(chunk) < BATCH_OVERHEAD:
                    return
            length = length_and_magic(chunk, at)[0] + LOG_OVERHEAD
            if length < BATCH_OVERHEAD or position + length > size:
                return
            if at + length > len(chunk):
                chunk, chunk_start, at = memoryview(file.pread(max(SCAN_CHUNK, length), position)), position, 0
            try:
                header = check_batch(chunk, at)
            except RecordError:
                return
            relative = header.last_offset - self.base_offset
            if header.base_offset < self.base_offset or relative > RELATIVE_OFFSET_MAX:
                return
            if header.base_offset <= previous_last or (end_offset is not None and header.last_offset >= end_offset):
                return
            previous_last = header.last_offset
            yield position, header, chunk[at : at + length]
            position += length

    # Timestamps

    def load_first_timestamp(self) -> int | None:
        """Return the largest timestamp of the first batch, None for an empty segment."""
        if self.first_timestamp is None and self.size:
            header = self.header_at(0)
            if header is not None and header.max_timestamp >= 0:
                self.first_timestamp = header.max_timestamp
        return self.first_timestamp

    def largest_timestamp(self) -> int:
        """Return the largest timestamp, or the time of the file's last change if no record has a timestamp."""
        return self.max_timestamp if self.max_timestamp >= 0 else self._disk.modified_ms(self.path)

    # Cutting and rebuilding

    def rebuild(
        self, *, end_offset: int | None = None, follows: Callable[[BatchHeader], bool] | None = None
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Read the segment from the start, and rebuild its indexes; the segment then ends behind the last good batch, its file not yet.

        Yields each good batch; the caller must exhaust the iterator, and `cut_tail` then. A batch that `follows` rejects is bad.
        """
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        self._positions.clear()
        self._bytes_since_index_entry = 0
        self.max_timestamp, self.max_timestamp_offset = NO_TIMESTAMP, self.base_offset
        self.first_timestamp = None
        good = 0
        for position, header, view in self.checked_batches(end_offset=end_offset):
            if follows is not None and not follows(header):
                break
            self.note_batch(position, header.size, header.base_offset, header.last_offset, header.max_timestamp)
            good = position + header.size
            yield header, view
        self.size = good

    def cut_tail(self) -> int:
        """Cut the file where the segment ends; return how many bytes that removed.

        Raises:
            OSError: the disk failed.
        """
        file = self.file()
        tail = file.size() - self.size
        if tail:
            file.truncate(self.size)
        return tail

    def open_existing(self) -> bool:
        """Load the indexes of an active segment and check them against its tail; return False if it must be rebuilt."""
        if not self.size:
            self.offset_index.reset()
            self.time_index.reset()
            return True
        if not self.offset_index.load() or not self.time_index.load():
            return False
        return self._tail_is_sound(None)

    def open_sealed(self, end_offset: int, *, is_cleaned: bool = False) -> bool:
        """Use the index files of a sealed segment as they are; return False if it must be rebuilt.

        Args:
            end_offset: where the next segment begins.
            is_cleaned: compaction has written the segment, so holes between its batches are not rot.
        """
        if not self.offset_index.open_sealed() or not self.time_index.open_sealed():
            return False
        return self._tail_is_sound(end_offset, is_cleaned)

    def _tail_is_sound(self, end_offset: int | None, is_cleaned: bool = False) -> bool:
        """Check the batches from the last index entry on, and take the largest timestamp from them.

        Args:
            end_offset: where the next segment begins; None for the active segment.
            is_cleaned: holes between batches are expected.
        """
        last = self.offset_index.last_entry()
        start = last[1] if last else 0
        if start >= self.size and self.size:
            return False
        timestamp, timestamp_offset = self.time_index.last_entry()
        if timestamp != NO_TIMESTAMP and not self.batch_has_timestamp(timestamp_offset, timestamp):
            return False
        self.max_timestamp, self.max_timestamp_offset = timestamp, timestamp_offset
        end = start
        last_offset = -1
        for position, header, _ in self.checked_batches(start, end_offset=end_offset):
            if position == start:
                if last is not None and header.last_offset != last[0]:
                    return False
            elif not is_cleaned and header.base_offset != last_offset + 1:
                # Compaction leaves such holes, and so does rot, since the CRC does not cover the offset: rebuild to be sure.
                return False
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
            end = position + header.size
            last_offset = header.last_offset
        self._bytes_since_index_entry = end - start
        self._positions.clear()
        return end == self.size and (end_offset is None or self.max_timestamp == timestamp)

    def batch_has_timestamp(self, last_offset: int, max_timestamp: int) -> bool:
        """Return whether a batch ends with `last_offset` and has this largest timestamp, as a time index entry claims."""
        if last_offset < self.base_offset:
            return False
        position = self._locate_or_none(last_offset)
        header = None if position is None or position >= self.size else self.header_at(position)
        return header is not None and (header.last_offset, header.max_timestamp) == (last_offset, max_timestamp)

    def _locate_or_none(self, offset: int) -> int | None:
        try:
            return self.locate(offset)
        except CorruptRecord:
            return None

    def next_offset(self) -> int:
        """Return the offset after the last batch."""
        last = self.offset_index.last_entry()
        offset = self.base_offset
        for _, header in self.headers(last[1] if last else 0):
            offset = header.next_offset
        return offset

    def truncate_to(self, offset: int) -> None:
        """Cut off the batch that holds `offset` and all after it. The segment is active again.

        Raises:
            OSError: the disk failed.
        """
        if self.offset_index.is_sealed:
            self.offset_index.load()
            self.time_index.load()
        position = self.locate(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.file().truncate(position)
        self.size = position
        self._positions.clear()
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last_entry()
        last = self.offset_index.last_entry()
        start = last[1] if last else 0
        for _, header in self.headers(start):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        self._bytes_since_index_entry = position - start
        if position == 0:
            self.first_timestamp = None
