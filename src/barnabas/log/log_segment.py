"""One segment of a log: a `.log` file of whole batches with its indexes (data plane).

    0                                                                             size
    | batch | batch | batch | …                                          | batch |
      ^ position 0            ^ an index entry every index.interval.bytes

- Batches are written with one `pwrite` at `size`; `size` moves only when all of it was taken. A failed or short write is
  cut off again; while that does not succeed either, the segment refuses further writes, so that no remains of an older write
  can ever follow a younger one.
- `max_timestamp` and the last offset of the batch that holds it are kept for the time index, rolling and retention.
- The `.log` file is opened on first use and may be closed at any time by `OpenFiles`; see there how long a handle is good.
- A sealed segment (every one but the last) has its indexes in files only.

Crash argument for `.log`: the bytes beyond the last sync may be missing, torn or garbage, in any order. Recovery reads from the
recovery point's segment on and keeps batches while length, magic, CRC and ascending offsets hold; the rest is cut off.
What had been synced lies before the recovery point, or in front of the first bad batch, and stays.

Source: Kafka's `LogSegment`, `FileRecords`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from barnabas.log import log_files
from barnabas.log.disk import Buffer, Disk, DiskFile
from barnabas.log.errors import KafkaStorageError
from barnabas.log.offset_index import OffsetIndex
from barnabas.log.open_files import OpenFiles
from barnabas.log.time_index import NO_TIMESTAMP, TimeIndex
from barnabas.log.transaction_index import TransactionIndex
from barnabas.records.record_batch import BATCH_OVERHEAD, HEADER, BatchHeader, CorruptRecord, RecordError, check_batch

MAGIC = 2
HEADER_CHUNK = 4096
"""One read of this many bytes sees every header up to the next index entry when batches are small."""
SCAN_CHUNK = 1 << 20
RELATIVE_OFFSET_MAX = 2**31 - 1
REMEMBERED_POSITIONS = 64


class LogSegment:
    """One segment."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_disk",
        "_file",
        "_must_cut",
        "_open_files",
        "_positions",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "index_interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "path",
        "recently_used",
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
            suffix: behind every file's name, for a segment that is not in its place yet: `.cleaned`, `.swap`.
        """
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
        self.recently_used = False
        self._file: DiskFile | None = None
        self._must_cut = False
        self._bytes_since_index_entry = 0
        # Offsets whose position is known because a read or a write ended there.
        self._positions: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<LogSegment base={self.base_offset} size={self.size}>"

    # Files

    def file(self) -> DiskFile:
        """The open `.log`; good until control returns to the event loop."""
        self.recently_used = True
        return self._file or self._open(create=False)

    def create(self) -> None:
        """Creates the empty `.log` and indexes, replacing what a former life may have left under their names."""
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
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Closes the handle for good."""
        if self._file is not None:
            self._open_files.closed(self)
            self.close_file()

    def file_paths(self) -> tuple[str, ...]:
        """Every file that belongs to the segment, whether it exists or not."""
        return (self.path, self.offset_index.path, self.time_index.path, self.transaction_index.path)

    def rename_to_deleted(self, tag: str = "") -> tuple[str, ...]:
        """Gives every file the suffix `.deleted`; reads that have begun go on. Returns the new names.

        Args:
            tag: in front of the suffix. A segment of the same base offset may go again before this one's files are gone.
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
        """Renames every file of the segment; reads that have begun go on. The caller syncs the directory.

        Raises:
            OSError: the disk refused; some files may have the new name already.
        """
        for holder in (self, self.offset_index, self.time_index, self.transaction_index):
            target = holder.path.removesuffix(old) + new
            with contextlib.suppress(FileNotFoundError):
                self._disk.rename(holder.path, target)
            holder.path = target

    # Writing

    def write(self, data: Buffer) -> int:
        """Appends whole batches; returns the position of the first. The caller calls `note_batch` for each.

        Raises:
            KafkaStorageError: the disk took less than all of it; the segment is as before.
        """
        position = self.size
        length = len(data)
        try:
            if self._must_cut:
                self.file().truncate(position)
                self._must_cut = False
            file = self._file or self._open(create=False)
            self.recently_used = True
            written = file.pwrite(data, position)
            if written != length:
                self._write_rest(file, memoryview(data), position, written)
        except OSError as error:
            self._cut_back()
            raise KafkaStorageError(f"cannot write to {self.path}: {error.strerror or error}") from error
        self.size = position + length
        return position

    def _write_rest(self, file: DiskFile, view: memoryview, position: int, written: int) -> None:
        while written < len(view):
            count = file.pwrite(view[written:], position + written)
            if count <= 0:
                raise OSError("the disk took no more bytes")
            written += count

    def _cut_back(self) -> None:
        self._must_cut = True
        with contextlib.suppress(OSError):
            self.file().truncate(self.size)
            self._must_cut = False

    def note_batch(self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Accounts for a batch that lies at `position`: largest timestamp, and an index entry when one is due."""
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
        """Ends writing: the last timestamp gets its index entry, and the indexes leave memory."""
        if not self.offset_index.is_sealed:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.offset_index.seal()
        self.time_index.seal()
        self.transaction_index.write_pending()
        self._positions.clear()

    def write_index_entries(self) -> None:
        """Writes the index entries that are only in memory, unsynced, while the segment goes on growing."""
        self.offset_index.write_pending()
        self.time_index.write_pending()
        self.transaction_index.write_pending()

    def write_indexes(self) -> None:
        """Writes the index entries that are only in memory, and the last timestamp, as before a close."""
        if not self.offset_index.is_sealed:
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.write_index_entries()

    # Reading

    def remember(self, offset: int, position: int) -> None:
        """Notes where `offset` begins, for the read that follows this one."""
        positions = self._positions
        if len(positions) >= REMEMBERED_POSITIONS:
            positions.clear()
        positions[offset] = position

    def locate(self, offset: int) -> int:
        """The position of the first batch whose last offset is at least `offset`; `size` when there is none."""
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
        """Scans headers from `start`, where a batch that ends with `last_offset` should lie; None when none does."""
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
            header = unpack_from(chunk, at)
            length = header[1] + 12
            last = header[0] + header[6]
            if header[3] != MAGIC or length < BATCH_OVERHEAD:
                return None
            if last_offset is not None and position == start and last != last_offset:
                return None
            if last >= offset:
                return position
            position += length
        return size

    def header_at(self, position: int) -> BatchHeader | None:
        """The header at `position`; None when the file ends before it."""
        raw = self.file().pread(BATCH_OVERHEAD, position)
        if len(raw) < BATCH_OVERHEAD:
            return None
        return BatchHeader._make(HEADER.unpack(raw))

    def end_of_read(self, start: int, limit: int, max_bytes: int, min_one: bool) -> int:
        """Where a read from `start` ends: on a batch border, at most `limit`, and within `max_bytes` if it can."""
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
        """Yields position and header of each batch, trusting the file: for replay of what recovery has checked."""
        size = self.size if end is None else end
        position = start
        chunk = b""
        chunk_start = start
        unpack_from = HEADER.unpack_from
        while position + BATCH_OVERHEAD <= size:
            at = position - chunk_start
            if at + BATCH_OVERHEAD > len(chunk):
                chunk = self.file().pread(HEADER_CHUNK, position)
                chunk_start = position
                at = 0
                if len(chunk) < BATCH_OVERHEAD:
                    return
            header = BatchHeader._make(unpack_from(chunk, at))
            if header.magic != MAGIC or header.size < BATCH_OVERHEAD:
                raise CorruptRecord(f"{self.path} holds no batch at position {position}")
            yield position, header
            position += header.size

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of one batch."""
        return self.file().pread(header.size, position)

    def checked_batches(
        self, start: int = 0, *, end_offset: int | None = None
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """Yields each batch from `start` with its bytes after checking it whole; ends silently at the first bad one.

        A batch that reaches `end_offset`, where the next segment begins, is bad as well. The view is good until the
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
            length = int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True) + 12
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
        """The timestamp of the first batch, None for an empty segment."""
        if self.first_timestamp is None and self.size:
            header = self.header_at(0)
            if header is not None and header.max_timestamp >= 0:
                self.first_timestamp = header.max_timestamp
        return self.first_timestamp

    def largest_timestamp(self) -> int:
        """The largest timestamp, or when the file was last written if no record has one."""
        return self.max_timestamp if self.max_timestamp >= 0 else self._disk.modified_ms(self.path)

    # Cutting and rebuilding

    def rebuild(self, *, end_offset: int | None = None) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Reads the segment from the start, rebuilds both indexes, and cuts the file behind the last good batch.

        Yields each good batch, so that the caller can rebuild what it derives from them. Exhaust it.
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
            self.note_batch(position, header.size, header.base_offset, header.last_offset, header.max_timestamp)
            good = position + header.size
            yield header, view
        file = self.file()
        if file.size() != good:
            file.truncate(good)
        self.size = good

    def open_existing(self) -> bool:
        """Loads the indexes of an active segment and checks them against the tail; False when it must be rebuilt."""
        if not self.size:
            self.offset_index.reset()
            self.time_index.reset()
            return True
        if not self.offset_index.load() or not self.time_index.load():
            return False
        return self._tail_is_sound(None)

    def open_sealed(self, end_offset: int, *, is_cleaned: bool = False) -> bool:
        """Takes the index files of a sealed segment as they are; False when it must be rebuilt.

        Args:
            end_offset: where the next segment begins.
            is_cleaned: compaction has written it, so holes between its batches are no sign of rot.
        """
        if not self.offset_index.open_sealed() or not self.time_index.open_sealed():
            return False
        return self._tail_is_sound(end_offset, is_cleaned)

    def _tail_is_sound(self, end_offset: int | None, is_cleaned: bool = False) -> bool:
        """Checks the batches from the last index entry on, and takes size and largest timestamp from them.

        Args:
            end_offset: where the next segment begins; None for the active segment.
            is_cleaned: holes are to be expected.
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
                # Compaction leaves such holes, and so does rot, since the CRC does not cover the offset: look at it all.
                return False
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
            end = position + header.size
            last_offset = header.last_offset
        self._bytes_since_index_entry = end - start
        self._positions.clear()
        return end == self.size and (end_offset is None or self.max_timestamp == timestamp)

    def batch_has_timestamp(self, last_offset: int, max_timestamp: int) -> bool:
        """Whether the batch that ends with `last_offset` has this largest timestamp: what a time index entry claims."""
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
        """The offset after the last batch: the next one to give out when this is the active segment."""
        last = self.offset_index.last_entry()
        offset = self.base_offset
        for _, header in self.headers(last[1] if last else 0):
            offset = header.next_offset
        return offset

    def truncate_to(self, offset: int) -> int:
        """Cuts off the batch that holds `offset` and all after it; returns the bytes removed. The segment is active again."""
        if self.offset_index.is_sealed:
            self.offset_index.load()
            self.time_index.load()
        position = self.locate(offset)
        removed = self.size - position
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        try:
            self.file().truncate(position)
        except OSError as error:
            raise KafkaStorageError(f"cannot truncate {self.path}: {error.strerror or error}") from error
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
        return removed
