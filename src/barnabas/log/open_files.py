"""How many segment files are open at a time: a second-chance queue of file handles.

Every segment opens its `.log` on first use and may find it closed at any later call, so that there may be more segments than
descriptors. A handle is therefore good until control returns to the event loop; code that needs the file later asks the segment again.

A use of a file costs one attribute write (`segment.recently_used = True`). Eviction takes the oldest file in the queue: if the segment
was used since the last visit it goes to the end of the queue once, else its file is closed. Opening and closing take constant time
on average.

The limit is a share of what the system allows the process (`Disk.max_open_files`), for an append to a closed file costs twice as much
as one to an open file, and the other descriptors are for connections.
"""

from __future__ import annotations

from collections import OrderedDict

__all__ = ["DEFAULT_LIMIT", "OpenFiles", "OpenedFile"]

DEFAULT_LIMIT = 512


class OpenedFile:
    """A segment, which opens its file when it needs it.

    Attributes:
        recently_used: set with each use of the file.
    """

    __slots__ = ("recently_used",)

    def __init__(self) -> None:
        self.recently_used = False

    def close_file(self) -> None:
        """Close the file; the next use opens it again."""
        raise NotImplementedError


class OpenFiles:
    """The queue of one log directory."""

    __slots__ = ("_queue", "limit")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        assert limit >= 2, "the least is one file to read and one to write"
        self.limit = limit
        self._queue: OrderedDict[OpenedFile, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<OpenFiles {len(self._queue)}/{self.limit}>"

    def __len__(self) -> int:
        return len(self._queue)

    def opened(self, segment: OpenedFile) -> None:
        """Add a segment whose file was just opened, and close another one if there are too many."""
        queue = self._queue
        queue[segment] = None
        while len(queue) > self.limit:
            oldest, _ = queue.popitem(last=False)
            if oldest is segment or oldest.recently_used:
                oldest.recently_used = False
                queue[oldest] = None
            else:
                oldest.close_file()

    def closed(self, segment: OpenedFile) -> None:
        """Forget a segment that closes its file by itself."""
        self._queue.pop(segment, None)
