"""How many segment files are open at once (data plane): a second-chance queue of file handles.

Every segment opens its `.log` on first use and may find it closed at any later call, so that tens of thousands of
segments live under a limit of a few hundred descriptors. A handle is therefore good until control returns to the event
loop, no longer; who needs it later asks the segment again.

Use costs one attribute write (`segment.recently_used = True`). Eviction goes round the queue: a segment used since the
last visit is spared once, the others are closed. Work per open is constant on average.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Protocol


class Closeable(Protocol):
    """What sits in the queue."""

    recently_used: bool

    def close_file(self) -> None:
        """Closes the handle if it is open; the next use opens it again."""
        ...


class OpenFiles:
    """The queue of one log directory."""

    __slots__ = ("_queue", "limit")

    def __init__(self, limit: int = 512) -> None:
        assert limit >= 2, "one file to read and one to write is the least"
        self.limit = limit
        self._queue: deque[Closeable] = deque()

    def __repr__(self) -> str:
        return f"<OpenFiles {len(self._queue)}/{self.limit}>"

    def __len__(self) -> int:
        return len(self._queue)

    def opened(self, segment: Closeable) -> None:
        """Notes an opened file, and closes another when the limit is passed."""
        queue = self._queue
        queue.append(segment)
        while len(queue) > self.limit:
            oldest = queue.popleft()
            if oldest is segment or oldest.recently_used:
                oldest.recently_used = False
                queue.append(oldest)
            else:
                oldest.close_file()

    def closed(self, segment: Closeable) -> None:
        """Forgets a file that its segment has closed for good."""
        with contextlib.suppress(ValueError):
            self._queue.remove(segment)
