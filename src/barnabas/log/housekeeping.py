"""Recurrent work on the logs of a directory: flushes, retention, index files, checkpoints, deleted segments.

About once a second the node awaits `Housekeeping.do`, which looks at every open log and gives the loop its turns meanwhile. If a disk
fails, it writes the error to the log and continues with the next partition.

Source: the scheduled tasks of Kafka's `LogManager`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_config import INT64_MAX
from barnabas.log.log_dir_failure import LogDirFailure
from barnabas.log.offset_checkpoints import Key, OffsetCheckpoints
from barnabas.log.partition_log import PartitionLog
from barnabas.log.steady_time import SteadyTime
from barnabas.turns import LOG_OPENED, RECORD, REPLICA, WRITE, pace

__all__ = ["Housekeeping", "Intervals"]

logger = logging.getLogger(__name__)

LOGS_PER_ROUND_STEP = 200
"""How many logs one call applies retention to, and as many whose silent producers it forgets: some 10 ms."""
INDEX_WRITE_INTERVAL_MS = 5_000
"""How old the index files of a running broker may be; only tools read them."""


class Intervals(NamedTuple):
    """Milliseconds between two rounds of each kind."""

    retention_ms: int
    producer_expiration_ms: int
    checkpoint_ms: int
    high_watermarks_ms: int


class Housekeeping:
    """The recurring work of one `LogManager`.

    Args:
        logs, unopened: the manager's, as they are at each time.
        failure: notes whether the disk takes the checkpoints.
        apply_retention_to: opens a log if need be; logs its failures.
        now_ms: the wall clock.
    """

    def __init__(
        self,
        root_dir: str,
        logs: Mapping[Key, PartitionLog],
        unopened: Mapping[Key, str],
        checkpoints: OffsetCheckpoints,
        failure: LogDirFailure,
        apply_retention_to: Callable[[Key], object],
        intervals: Intervals,
        now_ms: Callable[[], int],
    ) -> None:
        self._root_dir = root_dir
        self._logs = logs
        self._unopened = unopened
        self._checkpoints = checkpoints
        self._failure = failure
        self._apply_retention_to = apply_retention_to
        self._intervals = intervals
        self._now_ms = now_ms
        self._steady_ms = SteadyTime(now_ms)
        self._next_retention_ms = 0
        self._next_producer_check_ms = 0
        self._next_checkpoint_ms = 0
        self._next_high_watermarks_ms = 0
        self._next_index_write_ms = 0
        # The logs that are left in the current rounds of retention and of silent producers.
        self._retention_round: list[Key] = []
        self._producer_round: list[Key] = []
        self._is_closing: Callable[[], bool] = bool

    def __repr__(self) -> str:
        return f"<Housekeeping {self._root_dir} retention={len(self._retention_round)}>"

    def begin(self) -> None:
        """Begin the intervals."""
        now_ms = self._steady_ms()
        self._next_retention_ms = now_ms + self._intervals.retention_ms
        self._next_producer_check_ms = now_ms + self._intervals.producer_expiration_ms
        self._next_checkpoint_ms = now_ms + self._intervals.checkpoint_ms
        self._next_high_watermarks_ms = now_ms + self._intervals.high_watermarks_ms

    async def do(self, is_closing: Callable[[], bool], *, are_logs_removed: bool = False) -> None:
        """Do the work that is due.

        Args:
            is_closing: returns whether the logs are being closed meanwhile; then nothing more is done.
            are_logs_removed: the files of deleted logs go next. A checkpoint that still names a log without a directory would make the
                next run doubt what this one wrote (`RunClaim`).
        """
        self._is_closing = is_closing
        if are_logs_removed:
            self._next_high_watermarks_ms = 0
        now_ms = self._steady_ms()
        await self._each_log(self._flush_if_due)
        await self._retain(now_ms)
        await self._expire_producers(now_ms)
        if now_ms >= self._next_index_write_ms:
            self._next_index_write_ms = now_ms + INDEX_WRITE_INTERVAL_MS
            await self._each_log(self._write_index_entries)
        if not is_closing():
            await self._write_checkpoints(now_ms)
        await self._each_log(self._remove_deleted_segments)

    async def _each_log(self, work: Callable[[PartitionLog], bool]) -> None:
        """Do some work for each open log; it returns whether there was something to do."""
        cost = RECORD
        for key, log in list(self._logs.items()):
            await pace(cost)
            if self._is_closing():
                return
            cost = WRITE if self._logs.get(key) is log and work(log) else RECORD

    def _flush_if_due(self, log: PartitionLog) -> bool:
        """Flush a log whose flush.ms has passed since its last flush, or the clock was set back; return whether that was so."""
        since_ms = self._now_ms() - log.last_flush_ms
        if (
            log.config.flush_ms != INT64_MAX
            and log.recovery_point < log.log_end_offset
            and not 0 <= since_ms < log.config.flush_ms
        ):
            with self._logged(f"flush {log.name}"):
                log.flush_elsewhere()
            return True
        return False

    async def _retain(self, now_ms: int) -> None:
        """Apply retention to the next logs of the round; a log that was not used since the start is opened for it."""
        if now_ms >= self._next_retention_ms:
            self._next_retention_ms = now_ms + self._intervals.retention_ms
            self._retention_round = [*self._logs, *self._unopened]
        due = self._retention_round[:LOGS_PER_ROUND_STEP]
        del self._retention_round[:LOGS_PER_ROUND_STEP]
        for key in due:
            await pace(LOG_OPENED if key in self._unopened else REPLICA)
            if self._is_closing():
                return
            self._apply_retention_to(key)

    async def _expire_producers(self, now_ms: int) -> None:
        """Make logs forget silent producers; an unopened log forgets them when it opens."""
        if now_ms >= self._next_producer_check_ms:
            self._next_producer_check_ms = now_ms + self._intervals.producer_expiration_ms
            self._producer_round = list(self._logs)
        due = self._producer_round[:LOGS_PER_ROUND_STEP]
        del self._producer_round[:LOGS_PER_ROUND_STEP]
        for key in due:
            await pace(REPLICA)
            log = self._logs.get(key)
            if log is not None and not self._is_closing():
                log.expire_producers()

    def _write_index_entries(self, log: PartitionLog) -> bool:
        with self._logged(f"write the index entries of {log.name}"):
            return log.write_index_entries()
        return True

    async def _write_checkpoints(self, now_ms: int) -> None:
        """Write the checkpoints that are due; a checkpoint that a truncation kept from being written is due immediately."""
        if now_ms >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = now_ms + self._intervals.checkpoint_ms
            writing = self._checkpoints.write(self._logs, self._unopened)
            if not await self._watched("the checkpoints", writing):
                self._next_checkpoint_ms = now_ms
        elif now_ms >= self._next_high_watermarks_ms:
            self._next_high_watermarks_ms = now_ms + self._intervals.high_watermarks_ms
            writing = self._checkpoints.write_high_watermarks(self._logs, self._unopened)
            if not await self._watched("the checkpoint of high watermarks", writing):
                self._next_high_watermarks_ms = now_ms

    async def _watched(self, what: str, writing: Coroutine[Any, Any, bool]) -> bool:
        """Write a checkpoint, and note whether the disk takes it; return False if a truncation ended the write before it began."""
        try:
            is_written = await writing
        except (KafkaStorageError, OSError) as error:
            self._failure.failed(what, error)
            return True
        if is_written:
            self._failure.succeeded()
        return is_written

    def _remove_deleted_segments(self, log: PartitionLog) -> bool:
        if not log.has_deleted_files:
            return False
        with self._logged(f"remove deleted segments of {log.name}"):
            log.remove_deleted_files()
        return True

    @contextlib.contextmanager
    def _logged(self, what: str) -> Iterator[None]:
        try:
            yield
        except (KafkaStorageError, OSError) as error:
            if not self._failure.is_offline:
                logger.error("%s: cannot %s: %s", self._root_dir, what, in_words(error))
            self._failure.noticed(error, f"cannot {what}")
