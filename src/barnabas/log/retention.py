"""Which segments retention deletes, and the deleted files that wait for their removal.

Retention deletes whole segments, oldest first, and only below the high watermark:

- below the log start, whatever the policy: DeleteRecords has moved it past them;
- by time: all records are older than retention.ms (by their timestamps; by the file's age if they have none);
- by size: without the segment the log is still at least retention.bytes.

-1 is unlimited. Source: Kafka's `UnifiedLog.deleteOldSegments`.
"""

from __future__ import annotations

import logging

from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import RunBlocking, run_inline
from barnabas.log.log_segments import LogSegments

logger = logging.getLogger(__name__)


def count_deletable(
    segments: LogSegments,
    config: LogConfig,
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
) -> int:
    """Return how many of the oldest segments may be deleted; all if even the active one may."""
    count = 0
    while count + 1 < len(segments) and segments.at(count + 1).base_offset <= log_start_offset:
        count += 1
    if not config.delete:
        return count
    committed = 0
    for slot, segment in enumerate(segments):
        if segments.end_of(slot, log_end_offset) > high_watermark or not segment.size:
            break
        committed += 1
    return max(count, _beyond_ms(segments, committed, config, now_ms), _beyond_bytes(segments, committed, config))


def _beyond_ms(segments: LogSegments, committed: int, config: LogConfig, now_ms: int) -> int:
    count = 0
    if config.retention_ms >= 0:
        while count < committed and now_ms - segments.at(count).largest_timestamp() > config.retention_ms:
            count += 1
    return count


def _beyond_bytes(segments: LogSegments, committed: int, config: LogConfig) -> int:
    count = 0
    if config.retention_bytes >= 0:
        excess = segments.size_in_bytes - config.retention_bytes
        while count < committed and excess >= segments.at(count).size:
            excess -= segments.at(count).size
            count += 1
    return count


class DeletedFiles:
    """Files renamed to `.deleted`, and when they may be removed: reads that began before can finish."""

    __slots__ = ("_disk", "_run_blocking", "_waiting")

    def __init__(self, disk: Disk, run_blocking: RunBlocking) -> None:
        self._disk = disk
        self._run_blocking = run_blocking
        self._waiting: list[tuple[int, tuple[str, ...]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, due_ms: int, paths: tuple[str, ...]) -> None:
        self._waiting.append((due_ms, paths))

    def remove(self, now_ms: int, *, at_once: bool = False) -> None:
        """Remove the files that are due; `at_once` removes all, and blocks."""
        due = [path for when, paths in self._waiting if at_once or when <= now_ms for path in paths]
        if not due:
            return
        self._waiting = [entry for entry in self._waiting if not at_once and entry[0] > now_ms]
        disk = self._disk

        def work() -> None:
            for path in due:
                if disk.exists(path):
                    disk.remove(path)

        def done(error: BaseException | None) -> None:
            if error is not None and not isinstance(error, FileNotFoundError):
                logger.error("Cannot remove deleted segments, the next start will: %s", in_words(error))

        (run_inline if at_once else self._run_blocking)(work, done)
