"""Directories of deleted logs: renamed at the deletion, their files removed after file.delete.delay.ms, off the loop.

Source: Kafka's `LogManager.deleteLogs`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.log_flusher import RunBlocking
from barnabas.log.steady_time import SteadyTime
from barnabas.turns import REPLICA, pace

__all__ = ["DeletedLogs"]

logger = logging.getLogger(__name__)


class DeletedLogs:
    """The deleted logs of one data directory.

    Attributes:
        entries: each directory's path, with the time from which its files may go.
    """

    def __init__(self, disk: Disk, now_ms: Callable[[], int], run_blocking: RunBlocking) -> None:
        self.entries: list[tuple[int, str]] = []
        self._disk = disk
        self._steady_ms = SteadyTime(now_ms)
        self._run_blocking = run_blocking

    def __repr__(self) -> str:
        return f"<DeletedLogs {len(self.entries)}>"

    def add(self, path: str, delay_ms: int = 0) -> None:
        """Remove a directory, which has its new name already, after a delay."""
        self.entries.append((self._steady_ms() + delay_ms, path))

    def is_due(self) -> bool:
        """Return whether there is a directory whose delay has passed."""
        now_ms = self._steady_ms()
        return any(when <= now_ms for when, _ in self.entries)

    async def remove_due(self, is_closing: Callable[[], bool]) -> None:
        """Remove the files of deleted logs whose delay has passed.

        Args:
            is_closing: returns whether the directory is being closed; the next start lists the rest.
        """
        now_ms = self._steady_ms()
        due = [path for when, path in self.entries if when <= now_ms]
        if due:
            self.entries = [entry for entry in self.entries if entry[0] > now_ms]
            for path in due:
                await pace(REPLICA)
                if is_closing():
                    return
                self._remove_tree(path)

    def _remove_tree(self, path: str) -> None:
        def done(error: BaseException | None) -> None:
            if error is not None and not isinstance(error, FileNotFoundError):
                logger.error("%s: cannot remove it: %s", path, in_words(error))

        self._run_blocking(lambda: self._disk.rmtree(path), done)
