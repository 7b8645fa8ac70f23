"""The result of a read: a range of bytes of one segment that begins and ends between batches.

A slice holds no bytes and no open file. `fileno` and `position` are for `sendfile`, `read` for all other uses. The descriptor is good
until control returns to the event loop; after that the sender must ask again. The bytes stay
readable while the segment's files exist: until file.delete.delay.ms after its deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.log.errors import KafkaStorageError

if TYPE_CHECKING:
    from barnabas.log.log_segment import LogSegment
    from barnabas.records.record_batch import BatchHeader


class LogSlice:
    """Whole batches in one segment; `size` 0 if there is nothing to read."""

    __slots__ = ("_segment", "position", "size")

    def __init__(self, segment: LogSegment, position: int, size: int) -> None:
        self._segment = segment
        self.position = position
        self.size = size

    def __repr__(self) -> str:
        return f"<LogSlice {self._segment.base_offset}@{self.position}+{self.size}>"

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int:
        """Return the descriptor of the segment's file, -1 if the disk has none."""
        try:
            return self._segment.file().fileno()
        except OSError as error:
            raise KafkaStorageError(f"cannot open {self._segment.path}: {error.strerror or error}") from error

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position in the file and header of each batch, without reading the records.

        Raises:
            KafkaStorageError: the disk failed.
        """
        try:
            yield from self._segment.headers(self.position, self.position + self.size)
        except OSError as error:
            raise KafkaStorageError(f"cannot read {self._segment.path}: {error.strerror or error}") from error

    def part(self, start: int, end: int) -> LogSlice:
        """Return the batches between two positions in the file, as `headers` yields them."""
        assert self.position <= start <= end <= self.position + self.size, (self, start, end)
        return LogSlice(self._segment, start, end - start)

    def read(self) -> bytes:
        """Return the bytes.

        Raises:
            KafkaStorageError: the disk failed, or the file ends before the slice does.
        """
        if not self.size:
            return b""
        try:
            data = self._segment.file().pread(self.size, self.position)
            while len(data) < self.size:
                more = self._segment.file().pread(self.size - len(data), self.position + len(data))
                if not more:
                    raise KafkaStorageError(f"{self._segment.path} ends within a batch")
                data += more
        except OSError as error:
            raise KafkaStorageError(f"cannot read {self._segment.path}: {error.strerror or error}") from error
        return data
