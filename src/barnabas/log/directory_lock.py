"""The lock of a data directory, which one process has: a file in it.

    <root>/.lock        held while a broker owns the directory; it stays when the broker ends

Source: Kafka's `LogManager.lockLogDirs`, `KafkaRaftManager`.
"""

from __future__ import annotations

from barnabas.log.disk import Disk, DiskLock, parent_dir

__all__ = ["LOCK_FILE", "DirectoryLock"]

LOCK_FILE = ".lock"


class DirectoryLock:
    """The lock of one directory; not held at first."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._root = root
        self._held: DiskLock | None = None

    def __repr__(self) -> str:
        return f"<DirectoryLock {self._root} {'held' if self.is_locked else 'free'}>"

    @property
    def is_locked(self) -> bool:
        """Whether this process holds the lock by this object."""
        return self._held is not None

    def lock(self) -> None:
        """Lock the directory; create it if it is missing.

        Raises:
            DiskLocked: another broker owns the directory.
            OSError: the directory cannot be created or written.
        """
        if self._held is not None:
            return
        if not self._disk.is_dir(self._root):
            self._disk.mkdir(self._root)
            self._disk.sync_dir(parent_dir(self._root))
        self._held = self._disk.lock(f"{self._root}/{LOCK_FILE}")

    def release(self) -> None:
        """Let others have the directory."""
        if self._held is not None:
            self._held.release()
            self._held = None
