"""Decides which log is compacted when, and puts the result in place.

    poll      no cleaning runs, and the last search in vain is log.cleaner.backoff.ms ago: measure every compacted log, take the dirtiest
    worker    cleans its sealed segments into new ones (`cleaner`, in a child process)
    exchange  each new segment replaces its old ones, one after another (`segment_replacement`)
    done      the checkpoint says up to where the log is clean; the next log follows immediately

One log is cleaned at a time. Meanwhile:

- Appends and reads continue: the active segment is never cleaned.
- A truncation, a deletion of the log, and the broker's end cancel the cleaning. Finished exchanges stay; the rest is dropped.
- Retention waits until the cleaning is over (`is_cleaning`), as in Apache Kafka.

    cleaner-offset-checkpoint    Kafka's checkpoint format: topic, partition, first dirty offset

Crash argument for the checkpoint: it is written after the exchanges that it counts. If it is missing, broken or too old the
log looks dirtier than it is, and clean records are read again. It could only be too new after a truncation, which
therefore writes it immediately and durably.

A log with a corrupt segment is left out until the broker's next start, as in Apache Kafka ("uncleanable"). If the disk fails,
Apache Kafka takes the directory offline; here the log is tried again after `RETRY_MS`, or left out too if an exchange is half done.

Source: Kafka's `LogCleaner`, `LogCleanerManager`.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.log import checkpoints
from barnabas.log.cleanable_log import CleanableLog, CleanerConfig, measure, task_for
from barnabas.log.cleaning_task import CleaningDone, CleaningEvent, CleaningFailed, GroupCleaned
from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segment_replacement import SegmentReplacement
from barnabas.log.steady_time import SteadyTime

if TYPE_CHECKING:
    from barnabas.log.cleaner_worker import CleanerWorker
    from barnabas.log.log_flusher import RunBlocking

logger = logging.getLogger(__name__)

CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
RETRY_MS = 300_000

Key = tuple[str, int]


def inline_worker(disk: Disk) -> Callable[[RunBlocking], CleanerWorker]:
    """Return what makes a worker that cleans in the call."""

    def make(_: RunBlocking) -> CleanerWorker:
        # Imported late: most brokers have nothing to compact.
        from barnabas.log.cleaner_worker import InlineWorker

        return InlineWorker(disk)

    return make


class CleanerStats:
    """The source of Kafka's `kafka.log:type=LogCleaner` and `LogCleanerManager` metrics."""

    def __init__(self, now_ms: int) -> None:
        self.last: CleaningDone | None = None
        self.cleanings = 0
        self.cancelled = 0
        self.failed = 0
        self.bytes_read = 0
        self.bytes_written = 0
        # Of the last round of measuring: the largest ratio, and the largest delay beyond max.compaction.lag.ms.
        self.dirtiest_ratio = 0.0
        self.max_compaction_delay_ms = 0
        self.last_run_ms = now_ms

    @property
    def max_buffer_utilization_percent(self) -> int:
        return int(100 * self.last.buffer_utilization) if self.last is not None else 0

    @property
    def cleaner_recopy_percent(self) -> int:
        """Bytes written per byte read, in percent, in the last cleaning."""
        return int(100 * self.last.bytes_written / max(self.last.bytes_read, 1)) if self.last is not None else 0

    @property
    def max_clean_time_seconds(self) -> int:
        return int(self.last.elapsed_seconds) if self.last is not None else 0

    @property
    def max_compaction_delay_seconds(self) -> int:
        return self.max_compaction_delay_ms // 1000

    @property
    def max_dirty_percent(self) -> int:
        return int(100 * self.dirtiest_ratio)


class _Cleaning:
    """The cleaning that runs now."""

    __slots__ = ("exchange", "groups", "is_cancelled", "key", "log", "measured", "result")

    def __init__(self, key: Key, log: PartitionLog, measured: CleanableLog) -> None:
        self.key = key
        self.log = log
        self.measured = measured
        # New segments that wait, and the segment that is being exchanged.
        self.groups: deque[GroupCleaned] = deque()
        self.exchange: SegmentReplacement | None = None
        # The worker's last event; None while it works.
        self.result: CleaningDone | CleaningFailed | None = None
        self.is_cancelled = False


class LogCleaner:
    """The compaction of one data directory."""

    def __init__(
        self,
        disk: Disk,
        root_dir: str,
        logs: Mapping[Key, PartitionLog],
        *,
        now_ms: Callable[[], int],
        make_worker: Callable[[], CleanerWorker],
        config: CleanerConfig | None = None,
        on_cleaned: Callable[[Key], None] = lambda _: None,
    ) -> None:
        """
        Args:
            logs: the open logs, as they are at any time.
            make_worker: called once, when there is something to clean; returns the worker that reads and writes.
            on_cleaned: called when a log's cleaning has ended in any way.
        """
        self._disk = disk
        self._path = f"{root_dir}/{CLEANER_OFFSET_CHECKPOINT}"
        self._logs = logs
        self._now_ms = now_ms
        self._steady_ms = SteadyTime(now_ms)
        self._make_worker = make_worker
        self._worker: CleanerWorker | None = None
        self._on_cleaned = on_cleaned
        self.config = config or CleanerConfig()
        self._cleaned_to: dict[Key, int] = {}
        self._uncleanable: set[Key] = set()
        # Logs that move to another directory: their copies must not have other segments than they.
        self._paused: set[Key] = set()
        # Logs whose cleaning met a failing disk, and until when they are left alone.
        self._resting: dict[Key, int] = {}
        self._cleaning: _Cleaning | None = None
        self._next_poll_ms = 0
        self._is_polling = False
        self._is_closed = False
        self.stats = CleanerStats(now_ms())

    def __repr__(self) -> str:
        return f"<LogCleaner cleaning={self._cleaning.key if self._cleaning else None} done={self.stats.cleanings}>"

    def load(self) -> None:
        """Read the checkpoint; a broken one counts as missing.

        Raises:
            OSError: the disk failed.
        """
        offsets = checkpoints.read_offsets(self._disk, self._path)
        if offsets is None:
            logger.warning("%s is not complete and is ignored", self._path)
        self._cleaned_to = offsets or {}

    def cleaned_to(self, key: Key) -> int:
        """Return up to where a log has been cleaned, 0 if never."""
        return self._cleaned_to.get(key, 0)

    def is_cleaning(self, key: Key) -> bool:
        return self._cleaning is not None and self._cleaning.key == key

    @property
    def worker_deaths(self) -> int:
        """How often the cleaning process has died without being cancelled (Kafka's DeadThreadCount)."""
        return self._worker.deaths if self._worker is not None else 0

    @property
    def uncleanable(self) -> frozenset[Key]:
        """The logs that are not cleaned until the next start."""
        return frozenset(self._uncleanable)

    # Picking a log

    def poll(self) -> None:
        """Begin a cleaning if none runs and one is due; cheap otherwise."""
        if self._is_polling:
            # An inline worker has called back; the loop below continues.
            return
        self._is_polling = True
        try:
            while self._cleaning is None and not self._is_closed and self.config.enable and self._begin_next():
                pass
        finally:
            self._is_polling = False

    def _begin_next(self) -> bool:
        """Begin the cleaning of the dirtiest log; return False if none is due, or it is too early to measure."""
        steady_ms, now_ms = self._steady_ms(), self._now_ms()
        if steady_ms < self._next_poll_ms:
            return False
        self.stats.last_run_ms = now_ms
        picked = self._pick(now_ms)
        if picked is None:
            self._next_poll_ms = steady_ms + self.config.backoff_ms
            if self._worker is not None:
                self._worker.rest()
            return False
        if self._worker is None:
            self._worker = self._make_worker()
        key, measured = picked
        log = self._logs[key]
        try:
            task = task_for(log, measured, self.config, now_ms)
        except OSError as error:
            self._let_rest(key, in_words(error))
            return True
        logger.info(
            "Cleaning %s: %d of %d bytes are dirty, from offset %d to %d",
            log.name,
            measured.cleanable_bytes,
            measured.clean_bytes + measured.cleanable_bytes,
            measured.first_dirty_offset,
            measured.first_uncleanable_offset,
        )
        cleaning = self._cleaning = _Cleaning(key, log, measured)
        self._worker.start(task, lambda event: self._on_event(cleaning, event))
        return True

    def _pick(self, now_ms: int) -> tuple[Key, CleanableLog] | None:
        """Return the dirtiest of the logs that are due, None if none is."""
        best: tuple[Key, CleanableLog] | None = None
        dirtiest = 0.0
        delay_ms = 0
        steady_ms = self._steady_ms()
        for key, log in self._logs.items():
            if (
                not log.config.compact
                or key in self._uncleanable | self._paused
                or self._resting.get(key, 0) > steady_ms
            ):
                continue
            if log.segment_count == 1:
                continue
            try:
                measured = measure(log, self._cleaned_to.get(key), now_ms)
            except OSError as error:
                self._let_rest(key, in_words(error))
                continue
            dirtiest = max(dirtiest, measured.ratio)
            delay_ms = max(delay_ms, measured.compaction_delay_ms)
            if measured.is_due(log.config.min_cleanable_dirty_ratio) and (
                best is None or measured.ratio > best[1].ratio
            ):
                best = key, measured
        self.stats.dirtiest_ratio = dirtiest
        self.stats.max_compaction_delay_ms = delay_ms
        return best

    def _let_rest(self, key: Key, reason: str) -> None:
        """Leave a log alone for a while, because the disk failed."""
        self.stats.failed += 1
        self._resting[key] = self._steady_ms() + RETRY_MS
        logger.error("Cannot clean %s-%d now: %s", *key, reason)

    # The worker's answers

    def _on_event(self, cleaning: _Cleaning, event: CleaningEvent) -> None:
        if isinstance(event, GroupCleaned):
            if not cleaning.is_cancelled:
                cleaning.groups.append(event)
                self._exchange_next(cleaning)
            return
        cleaning.result = event
        self._exchange_next(cleaning)

    def _exchange_next(self, cleaning: _Cleaning) -> None:
        """Exchange the next new segment; end the cleaning after the last one."""
        if cleaning.exchange is not None or self._is_closed:
            return
        if cleaning.groups and not cleaning.is_cancelled:
            group = cleaning.groups.popleft()
            cleaning.exchange = cleaning.log.replace_segments(group, lambda ok: self._exchanged(cleaning, ok))
            cleaning.exchange.begin()
        elif cleaning.result is not None:
            self._end(cleaning, cleaning.result)

    def _exchanged(self, cleaning: _Cleaning, is_in_use: bool) -> None:
        exchange, cleaning.exchange = cleaning.exchange, None
        if exchange is not None and exchange.is_unfinished and self._logs.get(cleaning.key) is cleaning.log:
            self._uncleanable.add(cleaning.key)
            self._cancel(cleaning)
        elif not is_in_use and not cleaning.is_cancelled:
            # Segments behind a failed exchange must wait: a `.cleaned` file may be left there, and would undo theirs.
            self._resting[cleaning.key] = self._steady_ms() + RETRY_MS
            self._cancel(cleaning)
        self._exchange_next(cleaning)

    def _end(self, cleaning: _Cleaning, result: CleaningDone | CleaningFailed) -> None:
        self._cleaning = None
        key = cleaning.key
        name = cleaning.log.name
        stats = self.stats
        if isinstance(result, CleaningDone) and not cleaning.is_cancelled:
            stats.last = result
            stats.cleanings += 1
            stats.bytes_read += result.bytes_read
            stats.bytes_written += result.bytes_written
            logger.info(
                "Cleaned %s up to offset %d in %.1f s: %d of %d records and %d of %d bytes remain",
                name,
                result.end_offset,
                result.elapsed_seconds,
                result.messages_written,
                result.messages_read,
                result.bytes_written,
                result.bytes_read,
            )
            if result.invalid_messages_read:
                logger.warning("%s: removed %d records without a key", name, result.invalid_messages_read)
            self._set_cleaned_to(key, result.end_offset)
        elif cleaning.is_cancelled:
            stats.cancelled += 1
            logger.info("The cleaning of %s was cancelled", name)
        elif isinstance(result, CleaningFailed):
            if result.is_corrupt:
                stats.failed += 1
                self._uncleanable.add(key)
                logger.error("Cannot clean %s before the next start: %s", name, result.reason)
            else:
                self._let_rest(key, result.reason)
        if cleaning.is_cancelled or isinstance(result, CleaningFailed):
            # Only now does no append write these files, and no exchange rename them.
            self._remove_cleaned_files(cleaning.log)
        self._on_cleaned(key)
        self.poll()

    def _remove_cleaned_files(self, log: PartitionLog) -> None:
        """Remove the new segments that were not exchanged."""
        from barnabas.log.cleaner import remove_cleaned_files  # with the worker that this follows

        with contextlib.suppress(OSError):
            remove_cleaned_files(self._disk, log.directory)

    # Changes of a log meanwhile

    def _cancel(self, cleaning: _Cleaning) -> None:
        cleaning.is_cancelled = True
        cleaning.groups.clear()
        if cleaning.exchange is not None:
            cleaning.exchange.give_up()
        if cleaning.result is None and self._worker is not None:
            self._worker.cancel()

    def truncated(self, key: Key, offset: int) -> None:
        """Note that a log is about to be cut at `offset`."""
        if self._cleaning is not None and self._cleaning.key == key:
            self._cancel(self._cleaning)
        if self._cleaned_to.get(key, 0) > offset:
            self._set_cleaned_to(key, offset, sync=True)

    def removed(self, key: Key) -> None:
        """Note that a log is about to leave the directory."""
        if self._cleaning is not None and self._cleaning.key == key:
            self._cancel(self._cleaning)
        self._uncleanable.discard(key)
        self._paused.discard(key)
        self._resting.pop(key, None)
        if key in self._cleaned_to:
            self._set_cleaned_to(key, None)

    def pause(self, key: Key) -> None:
        """Clean a log no more, until `resume`, because it moves to another directory."""
        self._paused.add(key)
        if self._cleaning is not None and self._cleaning.key == key:
            self._cancel(self._cleaning)

    def resume(self, key: Key) -> None:
        """Clean a log again."""
        self._paused.discard(key)

    def inherit(self, key: Key, cleaned_to: int) -> None:
        """Note up to where a log is clean that moves into the directory; 0 if it was never cleaned."""
        if cleaned_to:
            self._set_cleaned_to(key, cleaned_to, sync=True)

    def close(self) -> None:
        """Cancel the cleaning and end the worker; the next opening finishes an exchange that has begun."""
        self._is_closed = True
        cleaning = self._cleaning
        if cleaning is not None:
            cleaning.is_cancelled = True
            if cleaning.exchange is not None:
                cleaning.exchange.detach()
        if self._worker is not None:
            self._worker.cancel()
            self._worker.rest()

    def _set_cleaned_to(self, key: Key, offset: int | None, *, sync: bool = False) -> None:
        if offset is None:
            self._cleaned_to.pop(key, None)
        else:
            self._cleaned_to[key] = offset
        try:
            self._disk.write_file_atomic(self._path, checkpoints.encode_offsets(self._cleaned_to), sync=sync)
        except OSError as error:
            logger.error("Cannot write %s: %s", self._path, in_words(error))
