"""Makes a log durable, and knows up to where it is.

Everything below the recovery point survives a power cut. A flush syncs the `.log` files from the recovery point on, the indexes of the
sealed segments among them, and, if names in the directory have changed, the directory and the topic id in it; then the recovery point
moves. A sync opens the file by its path, so it can run in another thread while the log is written to. The indexes of the active segment are
not synced: after an unclean stop recovery always reads the whole active segment.

Invariants:

- The recovery point moves only after the sync has ended, and at most to where the log ended when the sync began.
- If the log is truncated during a sync, the recovery point stays: its bytes are no longer the synced ones.
- A truncation is durable before anything is written behind it (`settle`): else a power cut could bring old batches back behind new
  ones. Its sync begins elsewhere immediately; a follower's next batches arrive a round trip later, and seldom have to wait for it.
- A failed sync does not say which writes the system has dropped, so `failure` stays set until the log is opened again. The same
  holds for a truncation that failed half way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from barnabas.log import log_files
from barnabas.log.disk import Disk, parent_dir
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_segments import LogSegments

logger = logging.getLogger(__name__)

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]
RunBlocking = Callable[[Work, Done], None]


def ignored(error: BaseException | None) -> None:
    """Take note of no end: for a flush without a waiter."""


def run_inline(work: Work, done: Done) -> None:
    """Do blocking work in the call: for tests, tools, and a simulated disk."""
    try:
        work()
    except OSError as error:
        done(error)
    else:
        done(None)


def run_in_future(submit: Callable[[Callable[[], None]], asyncio.Future[None]]) -> RunBlocking:
    """Adapt `loop.run_in_executor` and similar functions, which return a future, to `RunBlocking`."""

    def run(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        def finished(future: asyncio.Future[None]) -> None:
            done(FileNotFoundError("cancelled") if future.cancelled() else future.exception())

        submit(work).add_done_callback(finished)

    return run


class LogFlusher:
    """The durability of one log.

    Attributes:
        recovery_point: up to where the log is durable.
        failure: why the log takes no more writes; None while all syncs have succeeded.
        is_settled: whether the last truncation is durable; if not, `settle` must come before the next write.
        last_flush_ms: when the last flush began.
    """

    __slots__ = (
        "_disk",
        "_name_changes",
        "_name_changes_synced",
        "_on_failure",
        "_run_blocking",
        "_segments",
        "_truncations",
        "directory",
        "failure",
        "is_settled",
        "last_flush_ms",
        "recovery_point",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        segments: LogSegments,
        recovery_point: int,
        now_ms: int,
        run_blocking: RunBlocking,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Args:
            on_failure: called with the reason when a sync or a truncation has failed.
        """
        self._disk = disk
        self._segments = segments
        self._run_blocking = run_blocking
        self._on_failure = on_failure
        self.directory = directory
        self.recovery_point = recovery_point
        self.failure: str | None = None
        self.last_flush_ms = now_ms
        # How many files were created, renamed or removed in the directory, and how many of these changes are durable.
        self._name_changes = 1
        self._name_changes_synced = 0
        # Counts truncations, so that a sync that began before one does not move the recovery point after it.
        self._truncations = 0
        self.is_settled = True

    def __repr__(self) -> str:
        return f"<LogFlusher recovery_point={self.recovery_point} failure={self.failure!r}>"

    def names_changed(self) -> None:
        """Note that a file was created, renamed or removed."""
        self._name_changes += 1

    def directory_renamed(self, directory: str) -> None:
        """Follow a rename of the directory. A sync that is under way may miss its files, so it moves no recovery point."""
        self.directory = directory
        self._name_changes += 1
        self._truncations += 1

    def truncated(self, log_end_offset: int) -> None:
        """Note that the log is cut, or about to be cut, and ends here."""
        self._truncations += 1
        self.is_settled = False
        self.recovery_point = min(self.recovery_point, log_end_offset)

    def settle(self) -> None:
        """Make the last truncation durable if it is not yet; blocks.

        Raises:
            KafkaStorageError: the disk failed; the log takes no more writes.
        """
        if self.is_settled:
            return
        name_changes = self._name_changes
        try:
            self._settling()()
        except OSError as error:
            raise self.failed(error) from error
        self._settled(self._truncations, name_changes)

    def settle_elsewhere(self) -> None:
        """As `settle`, but through `run_blocking`: return immediately."""
        truncations, name_changes = self._truncations, self._name_changes

        def done(error: BaseException | None) -> None:
            if error is None:
                self._settled(truncations, name_changes)
            elif not isinstance(error, FileNotFoundError):
                self.failed(error)

        self._run_blocking(self._settling(), done)

    def _settling(self) -> Work:
        # Nothing is written before the end of this sync, so the truncation cut the active segment. It cut the epochs too.
        paths = [self._segments.active.path, f"{self.directory}/{log_files.LEADER_EPOCH_CHECKPOINT}"]
        return self._syncing(paths, self.directory)

    def _settled(self, truncations: int, name_changes: int) -> None:
        self._name_changes_synced = max(self._name_changes_synced, name_changes)
        if truncations == self._truncations:
            self.is_settled = True

    def flush(self, log_end_offset: int, now_ms: int) -> None:
        """Make the log durable up to its end; blocks.

        Raises:
            KafkaStorageError: the disk failed; the log takes no more writes.
        """
        self.last_flush_ms = now_ms
        self.settle()
        if self.recovery_point >= log_end_offset and self._name_changes_synced == self._name_changes:
            return
        name_changes = self._name_changes
        work = self._work(log_end_offset, [])
        try:
            work()
        except OSError as error:
            raise self.failed(error) from error
        self._flushed(log_end_offset, self._truncations, name_changes)

    def flush_elsewhere(self, offset: int, more_paths: list[str], on_end: Done = ignored) -> None:
        """As `flush` up to an offset, but through `run_blocking`; the recovery point moves when that has ended.

        Args:
            more_paths: files to sync in addition to those of the segments.
            on_end: called after that, with the error of the disk, or with FileNotFoundError if the log has been deleted.
        """
        truncations = self._truncations
        name_changes = self._name_changes

        def done(error: BaseException | None) -> None:
            if error is None:
                self._flushed(offset, truncations, name_changes)
            elif not isinstance(error, FileNotFoundError):
                self.failed(error)
            # Otherwise the log has been deleted, and its directory renamed, during the sync.
            on_end(error)

        self._run_blocking(self._work(offset, more_paths), done)

    def _work(self, offset: int, more_paths: list[str]) -> Work:
        paths = list(more_paths)
        active = self._segments.active
        for segment in self._segments.starting_with(self.recovery_point):
            if segment.base_offset >= offset and segment.base_offset > self.recovery_point:
                break
            paths.extend(segment.file_paths() if segment is not active else [segment.path])
        # Two flushes may overlap, one in another thread: each syncs the names until one of them has ended.
        return self._syncing(paths, None if self._name_changes_synced == self._name_changes else self.directory)

    def _syncing(self, paths: list[str], directory: str | None) -> Work:
        disk = self._disk
        if directory is not None:
            paths = [*paths, f"{directory}/{log_files.PARTITION_METADATA}"]

        def work() -> None:
            for path in dict.fromkeys(paths):
                # Not every segment has every file, and retention may delete one during the sync.
                with contextlib.suppress(FileNotFoundError):
                    disk.sync_file(path)
            if directory is not None:
                disk.sync_dir(directory)
                disk.sync_dir(parent_dir(directory))

        return work

    def _flushed(self, offset: int, truncations: int, name_changes: int) -> None:
        """Note the end of a sync that began when the log ended at `offset`."""
        self._name_changes_synced = max(self._name_changes_synced, name_changes)
        if truncations == self._truncations and offset > self.recovery_point:
            self.recovery_point = offset

    def failed(self, error: BaseException, what: str = "a sync") -> KafkaStorageError:
        """Reject all writes from now on; return the error to raise."""
        self._name_changes += 1
        self.failure = (
            f"{what} of {self.directory} failed: {in_words(error)}; the log takes no writes until it is opened again"
        )
        logger.error("%s", self.failure)
        self._on_failure(f"{what} of {self.directory} failed: {in_words(error)}")
        return KafkaStorageError(self.failure)
