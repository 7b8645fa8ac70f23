"""The segments of one log and their files: reads, cuts, deletes and replaces them.

    | segment | segment | segment | active |          LogSegments, in order
                 |         |
                 +---------+----> .deleted            no new reads; reads that have begun finish

`PartitionLog` decides when and why, and knows epochs and producers; this class moves files. Nothing here looks into a batch.

Invariants:

- A segment leaves the list in the same step in which its files lose their names: no read begins in a file that is being deleted.
- The flusher hears of every name that changes, and makes it durable with the next flush.

Source: Kafka's `LocalLog`.
"""

from __future__ import annotations

from barnabas.log import log_files
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import LogFlusher, RunBlocking
from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.log.log_slice import LogSlice
from barnabas.log.open_files import OpenFiles
from barnabas.log.retention import DeletedFiles


class LocalLog:
    """The segments of one log on one disk.

    Attributes:
        directory: where the log lives; it changes when the log is deleted or set aside.
        log_end_offset: the next offset to be appended; the appender moves it.
    """

    __slots__ = (
        "_disk",
        "_flusher",
        "_open_files",
        "_replacements",
        "deleted_files",
        "directory",
        "is_closed",
        "log_end_offset",
        "segments",
    )

    def __init__(
        self,
        disk: Disk,
        open_files: OpenFiles,
        directory: str,
        segments: LogSegments,
        log_end_offset: int,
        flusher: LogFlusher,
        run_blocking: RunBlocking,
    ) -> None:
        self._disk = disk
        self._open_files = open_files
        self._flusher = flusher
        self.directory = directory
        self.segments = segments
        self.log_end_offset = log_end_offset
        self.is_closed = False
        self._replacements = 0
        self.deleted_files = DeletedFiles(disk, run_blocking)

    def __repr__(self) -> str:
        return f"<LocalLog {self.directory} {self.segments!r}>"

    def create_segment(
        self, base_offset: int, config: LogConfig, now_ms: int, suffix: str = "", size: int = 0
    ) -> LogSegment:
        """Return a segment that is not in the list."""
        return LogSegment(
            self._disk,
            self._open_files,
            self.directory,
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=now_ms,
            size=size,
            suffix=suffix,
        )

    def read(self, offset: int, max_bytes: int, max_offset: int, min_one: bool) -> LogSlice:
        """Find whole batches within one segment; the first of them holds `offset`. See `PartitionLog.read`.

        Raises:
            KafkaStorageError: the disk failed.
        """
        segments = self.segments
        active = segments.active
        if offset >= max_offset:
            return LogSlice(active, active.size, 0)
        slot = len(segments) - 1 if offset >= active.base_offset else segments.slot(offset)
        segment = active
        try:
            while True:
                segment = segments.at(slot)
                start = segment.locate(offset)
                if start < segment.size or segment is active:
                    break
                # Compaction or a cut has removed the rest of the segment: continue in the next.
                slot += 1
                offset = segments.at(slot).base_offset
                if offset >= max_offset:
                    return LogSlice(segment, start, 0)
            next_base = self.log_end_offset if segment is active else segments.end_of(slot, self.log_end_offset)
            limit = segment.size if max_offset >= next_base else segment.locate(max_offset)
            end = segment.end_of_read(start, limit, max_bytes, min_one) if start < limit else start
            if end == limit and max_offset <= next_base:
                segment.remember(max_offset, end)
        except OSError as error:
            raise KafkaStorageError(f"cannot read {segment.path}: {error.strerror or error}") from error
        return LogSlice(segment, start, end - start)

    # Cutting at the end

    def truncate_to(self, offset: int) -> None:
        """Remove every batch that ends at or after `offset`, which is not below the first segment.

        Raises:
            OSError: the disk failed.
        """
        segments = self.segments
        while segments.active.base_offset > offset:
            self._drop(segments.pop_active())
            self._flusher.names_changed()
        segments.active.truncate_to(offset)
        segments.active.transaction_index.truncate_to(offset)
        segments.active.before_write = self._flusher.settle
        self.log_end_offset = segments.active.next_offset()

    def restart_at(self, first: LogSegment) -> None:
        """Remove everything and begin again with an empty segment.

        Raises:
            OSError: the disk failed.
        """
        for segment in self.segments:
            self._drop(segment)
        first.create()
        first.before_write = self._flusher.settle
        self.segments.replace_all(first)
        self.log_end_offset = first.base_offset
        self._flusher.names_changed()

    def _drop(self, segment: LogSegment) -> None:
        segment.close()
        for path in segment.file_paths():
            if self._disk.exists(path):
                self._disk.remove(path)

    # Deleting at the start

    def delete_first(self, count: int, due_ms: int) -> None:
        """Remove the oldest segments; their files get the suffix `.deleted` and may be removed from `due_ms` on.

        Raises:
            OSError: the disk failed.
        """
        for segment in self.segments.pop_first(count):
            self.deleted_files.add(due_ms, segment.rename_to_deleted())
        self._flusher.names_changed()

    # Replacing in the middle

    def replaced_by(self, old: list[LogSegment], new: LogSegment, due_ms: int) -> None:
        """Replace some neighbours, whose files become `.deleted`, by a segment that is still in its `.swap` files.

        Raises:
            OSError: the disk failed. The list has changed nevertheless, and the next opening ends the work.
        """
        self.segments.replace(old, new)
        self._replacements += 1
        for segment in old:
            self.deleted_files.add(due_ms, segment.rename_to_deleted(f".{self._replacements}"))
        self._flusher.names_changed()

    def in_place(self, new: LogSegment) -> None:
        """Remove the suffix `.swap` from the names of a segment's files.

        Raises:
            OSError: the disk failed; the next opening ends the work.
        """
        new.change_suffix(log_files.SWAP, "")
        self._flusher.names_changed()

    # The directory and the end

    def directory_renamed(self, directory: str) -> None:
        """Follow a rename of the directory: reads that have begun can finish, and the log can be written to."""
        self.directory = directory
        self._flusher.directory_renamed(directory)
        for segment in self.segments:
            for file in (segment, segment.offset_index, segment.time_index, segment.transaction_index):
                file.path = f"{directory}/{file.path.rpartition('/')[2]}"

    def close(self) -> None:
        """Close all files; the log takes no more writes."""
        self.is_closed = True
        for segment in self.segments:
            segment.close()
