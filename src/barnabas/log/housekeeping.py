"""What recurs for the logs of a directory: flushes, retention, index files, checkpoints, deleted segments.

About once a second the server runs the generator `steps`, and gives the loop a turn after each step. A step looks at up to a
thousand logs, writes files of at most 100, and opens at most 20. A failing disk is logged, and its log skipped.

Source: the scheduled tasks of Kafka's `LogManager`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import NamedTuple

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_config import INT64_MAX
from barnabas.log.log_dir_failure import LogDirFailure
from barnabas.log.offset_checkpoints import LOGS_PER_STEP, Key, OffsetCheckpoints
from barnabas.log.partition_log import PartitionLog

__all__ = ["Housekeeping", "Intervals"]

logger = logging.getLogger(__name__)

LOGS_PER_ROUND_STEP = 200
"""How many logs one call applies retention to, and as many whose silent producers it forgets: some 10 ms."""
WRITTEN_LOG_COUNTS = 10
"""A log that a step flushes, or writes files of, counts as so many that it only looks at: a tenth of a millisecond."""
LOGS_OPENED_PER_STEP = 20
"""How many logs a step opens: half a millisecond each, on a fast disk."""
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
        self._next_retention_ms = 0
        self._next_producer_check_ms = 0
        self._next_checkpoint_ms = 0
        self._next_high_watermarks_ms = 0
        self._next_index_write_ms = 0
        # The logs that are left in the current rounds of retention and of silent producers.
        self._retention_round: list[Key] = []
        self._producer_round: list[Key] = []

    def __repr__(self) -> str:
        return f"<Housekeeping {self._root_dir} retention={len(self._retention_round)}>"

    def begin(self, now_ms: int) -> None:
        """Begin the intervals."""
        self._next_retention_ms = now_ms + self._intervals.retention_ms
        self._next_producer_check_ms = now_ms + self._intervals.producer_expiration_ms
        self._next_checkpoint_ms = now_ms + self._intervals.checkpoint_ms
        self._next_high_watermarks_ms = now_ms + self._intervals.high_watermarks_ms

    def steps(self) -> Iterator[None]:
        """Do what is due; yield after each step."""
        now_ms = self._now_ms()
        yield from self._each_log(self._flush_if_due)
        yield
        yield from self._retain(now_ms)
        yield
        self._expire_producers(now_ms)
        yield
        if now_ms >= self._next_index_write_ms:
            self._next_index_write_ms = now_ms + INDEX_WRITE_INTERVAL_MS
            yield from self._each_log(self._write_index_entries)
            yield
        yield from self._write_checkpoints(now_ms)
        yield from self._each_log(self._remove_deleted_segments)

    def _each_log(self, work: Callable[[PartitionLog], bool]) -> Iterator[None]:
        """Do some work for each open log; yield after each few, or fewer if there was something to do."""
        cost = 0
        for key, log in list(self._logs.items()):
            cost += WRITTEN_LOG_COUNTS if self._logs.get(key) is log and work(log) else 1
            if cost >= LOGS_PER_STEP:
                cost = 0
                yield

    def _flush_if_due(self, log: PartitionLog) -> bool:
        """Flush a log whose flush.ms has passed since its last flush; return whether that was so."""
        if (
            log.config.flush_ms != INT64_MAX
            and log.recovery_point < log.log_end_offset
            and self._now_ms() - log.last_flush_ms >= log.config.flush_ms
        ):
            with self._logged(f"flush {log.name}"):
                log.flush_elsewhere()
            return True
        return False

    def _retain(self, now_ms: int) -> Iterator[None]:
        """Apply retention to the next logs of the round; one that nobody has used since the start is opened for it."""
        if now_ms >= self._next_retention_ms:
            self._next_retention_ms = now_ms + self._intervals.retention_ms
            self._retention_round = [*self._logs, *self._unopened]
        due = self._retention_round[:LOGS_PER_ROUND_STEP]
        del self._retention_round[:LOGS_PER_ROUND_STEP]
        opened = 0
        for key in due:
            opened += key in self._unopened
            self._apply_retention_to(key)
            if opened == LOGS_OPENED_PER_STEP:
                opened = 0
                yield

    def _expire_producers(self, now_ms: int) -> None:
        """Make logs forget silent producers; an unopened log forgets them when it opens."""
        if now_ms >= self._next_producer_check_ms:
            self._next_producer_check_ms = now_ms + self._intervals.producer_expiration_ms
            self._producer_round = list(self._logs)
        for key in self._producer_round[:LOGS_PER_ROUND_STEP]:
            log = self._logs.get(key)
            if log is not None:
                log.expire_producers()
        del self._producer_round[:LOGS_PER_ROUND_STEP]

    def _write_index_entries(self, log: PartitionLog) -> bool:
        with self._logged(f"write the index entries of {log.name}"):
            return log.write_index_entries()
        return True

    def _write_checkpoints(self, now_ms: int) -> Iterator[None]:
        """Write the checkpoints that are due; those that could not be written because of a truncation are due at once."""
        if now_ms >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = now_ms + self._intervals.checkpoint_ms
            writing = self._checkpoints.write_stepwise(self._logs, self._unopened)
            if not (yield from self._watched("the checkpoints", writing)):
                self._next_checkpoint_ms = now_ms
        elif now_ms >= self._next_high_watermarks_ms:
            self._next_high_watermarks_ms = now_ms + self._intervals.high_watermarks_ms
            writing = self._checkpoints.write_high_watermarks_stepwise(self._logs, self._unopened)
            if not (yield from self._watched("the checkpoint of high watermarks", writing)):
                self._next_high_watermarks_ms = now_ms

    def _watched(self, what: str, writing: Generator[None, None, bool]) -> Generator[None, None, bool]:
        """Write a checkpoint, and note whether the disk takes it; return False if a truncation ended the write before it began."""
        try:
            is_written = yield from writing
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
