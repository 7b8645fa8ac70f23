"""The segments of one log and their files (data plane): reading, rolling, cutting, deleting and replacing them.

    | segment | segment | segment | active |          LogSegments, in order
                 |         |
                 +---------+----> .deleted            gone for new reads; reads that have begun finish

`PartitionLog` decides when and why, and knows of offsets, epochs and producers; this class moves files. Nothing here judges what
a batch says.

Invariants:

- A segment leaves the list in the same step in which its files lose their names: no read begins in a file on its way out.
- Every name that changes is reported to the flusher, which makes it durable with the next flush.

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
    """The segments of one log on one disk."""

    __slots__ = ("_disk", "_flusher", "_open_files", "_replacements", "deleted_files", "directory", "segments")

    def __init__(
        self,
        disk: Disk,
        open_files: OpenFiles,
        directory: str,
        segments: LogSegments,
        flusher: LogFlusher,
        run_blocking: RunBlocking,
    ) -> None:
        self._disk = disk
        self._open_files = open_files
        self._flusher = flusher
        self.directory = directory
        self.segments = segments
        self._replacements = 0
        self.deleted_files = DeletedFiles(disk, run_blocking)

    def __repr__(self) -> str:
        return f"<LocalLog {self.directory} {self.segments!r}>"

    def create_segment(
        self, base_offset: int, config: LogConfig, now_ms: int, suffix: str = "", size: int = 0
    ) -> LogSegment:
        """A segment that is not in the list."""
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

    def read(self, offset: int, max_bytes: int, max_offset: int, log_end_offset: int, min_one: bool) -> LogSlice:
        """The whole batches from the one that holds `offset`, within one segment; see `PartitionLog.read`.

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
                # The rest of the segment has been compacted away or cut: its successor goes on.
                slot += 1
                offset = segments.at(slot).base_offset
                if offset >= max_offset:
                    return LogSlice(segment, start, 0)
            next_base = log_end_offset if segment is active else segments.end_of(slot, log_end_offset)
            limit = segment.size if max_offset >= next_base else segment.locate(max_offset)
            end = segment.end_of_read(start, limit, max_bytes, min_one) if start < limit else start
            if end == limit and max_offset <= next_base:
                segment.remember(max_offset, end)
        except OSError as error:
            raise KafkaStorageError(f"cannot read {segment.path}: {error.strerror or error}") from error
        return LogSlice(segment, start, end - start)

    # Cutting at the end

    def truncate_to(self, offset: int) -> int:
        """Removes every batch that ends at or after `offset`; returns the new end. `offset` is not below the first segment.

        Raises:
            OSError: the disk failed.
        """
        segments = self.segments
        while segments.active.base_offset > offset:
            self._drop(segments.pop_active())
        segments.active.truncate_to(offset)
        segments.active.transaction_index.truncate_to(offset)
        return segments.active.next_offset()

    def restart_at(self, first: LogSegment) -> None:
        """Removes everything and begins again with an empty segment; the caller puts it in the list (`replace_all`).

        Raises:
            OSError: the disk failed.
        """
        for segment in self.segments:
            self._drop(segment)
        first.create()

    def _drop(self, segment: LogSegment) -> None:
        segment.close()
        for path in segment.file_paths():
            if self._disk.exists(path):
                self._disk.remove(path)

    # Deleting at the start

    def delete_first(self, count: int, due_ms: int) -> None:
        """Takes the oldest segments away; their files get the suffix `.deleted` and may be removed from `due_ms` on.

        Raises:
            OSError: the disk failed.
        """
        for segment in self.segments.pop_first(count):
            self.deleted_files.add(due_ms, segment.rename_to_deleted())
        self._flusher.names_changed()

    # Replacing in the middle

    def replaced_by(self, old: list[LogSegment], new: LogSegment, due_ms: int) -> None:
        """Puts a segment, in its `.swap` files still, in the place of some neighbours, whose files become `.deleted`.

        Raises:
            OSError: the disk failed. The list is changed nevertheless, and the next opening ends the work.
        """
        self.segments.replace(old, new)
        self._replacements += 1
        for segment in old:
            self.deleted_files.add(due_ms, segment.rename_to_deleted(f".{self._replacements}"))
        self._flusher.names_changed()

    def in_place(self, new: LogSegment) -> None:
        """Takes the suffix `.swap` from a segment's files.

        Raises:
            OSError: the disk failed; the next opening ends the work.
        """
        new.change_suffix(log_files.SWAP, "")
        self._flusher.names_changed()

    # The directory and the end

    def directory_renamed(self, directory: str) -> None:
        """Follows a rename of the directory, so that reads that have begun can finish."""
        self.directory = self._flusher.directory = directory
        for segment in self.segments:
            segment.path = f"{directory}/{segment.path.rpartition('/')[2]}"

    def close(self) -> None:
        for segment in self.segments:
            segment.close()
