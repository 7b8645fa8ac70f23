"""One partition's log: batches in, byte ranges out (data plane).

    log start                          high watermark        log end
    |  segment 0  |  segment 1  |  active segment             |
    ^ deleted from here          ^ rolled          appended here ^

Appending is `log_appender`'s. `read` answers with a `LogSlice`, a place in a file rather than bytes. The segments and their files are
moved by `local_log`.

Invariants:

- log start ≤ high watermark ≤ log end; recovery point ≤ log end. Offsets ascend without overlap.
- Nothing in memory changes before the disk has taken the whole write. A failed append leaves the log as it was.
- Every batch ends up in exactly one segment; a slice never crosses segments and never splits a batch.
- Index entries may exist in memory only; files follow on roll and close (see `index_file`).
- Nothing is synced on append unless flush.messages asks for it. A roll syncs the sealed segment, outside the append path.

A disk that refuses a write (full, or failing) gives KAFKA_STORAGE_ERROR, and the next append tries again: when space
returns the log goes on. Apache Kafka takes the directory offline instead. A failed sync is different: the system may
have dropped what it could not write, so the log refuses all writes until it has been opened again.

Left out here: tiered storage.

Source: Kafka's `UnifiedLog`, `LocalLog`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log import log_files, timestamp_lookup
from barnabas.log.append_checks import AppendChecks, AppendOrigin
from barnabas.log.append_info import AppendInfo
from barnabas.log.cleaning_task import GroupCleaned
from barnabas.log.errors import KafkaStorageError, OffsetOutOfRange
from barnabas.log.log_appender import LogAppender
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import RunBlocking, run_inline
from barnabas.log.log_segments import LogSegments
from barnabas.log.log_slice import LogSlice
from barnabas.log.producer_state_entry import ProducerStateEntry
from barnabas.log.recovery import replay_producers
from barnabas.log.retention import count_deletable
from barnabas.log.segment_replacement import SegmentReplacement
from barnabas.log.timestamp_lookup import TimestampAndOffset
from barnabas.log.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

__all__ = ["AppendInfo", "AppendOrigin", "PartitionLog", "RunBlocking", "TimestampAndOffset", "run_inline"]


class PartitionLog(LogAppender):
    """One partition's log."""

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.name} {self.log_start_offset}..{self.log_end_offset}"
            f" hw={self.high_watermark} segments={len(self._segments)}>"
        )

    @property
    def directory(self) -> str:
        """Where the log lives; it changes when the log is deleted or set aside."""
        return self._local.directory

    # Reading

    def read(self, offset: int, max_bytes: int, *, max_offset: int, min_one: bool = True) -> LogSlice:
        """Finds the whole batches from the one that holds `offset`, within one segment.

        Args:
            offset: where to begin; the slice may begin with earlier records of the same batch.
            max_bytes: how many bytes at most.
            max_offset: only batches below it: high watermark, last stable offset, or log end.
            min_one: return the first batch even if it is larger than `max_bytes` (KIP-74).

        Returns:
            A slice, of size 0 when there is nothing to read yet.

        Raises:
            OffsetOutOfRange: below the log start or beyond the log end.
            KafkaStorageError: the disk failed.
        """
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.log_end_offset, self.name)
        return self._local.read(offset, max_bytes, max_offset, self.log_end_offset, min_one)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record at or after `timestamp`, exact to the record; None when all are older."""
        return timestamp_lookup.first_at_or_after(self._segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp of the log (ListOffsets -3); None when no record has one."""
        return timestamp_lookup.first_with_largest(self._segments, self.log_start_offset)

    # Offsets and epochs

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest undecided transaction, None when there is none."""
        self._producers.high_watermark_moved(self.high_watermark)
        return self._producers.first_unstable_offset()

    @property
    def last_stable_offset(self) -> int:
        """Up to where a read_committed reader may read."""
        producers = self._producers
        if not producers.ongoing and not producers.unreplicated:
            return self.high_watermark
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def latest_epoch(self) -> int:
        """The largest leader epoch in the log, -1 when it has none."""
        return self._latest_epoch

    @property
    def epoch_entries(self) -> list[tuple[int, int]]:
        """Each leader epoch with its start offset."""
        return self._epochs.entries()

    def epoch_for_offset(self, offset: int) -> int:
        """The leader epoch that wrote an offset, -1 when unknown."""
        return self._epochs.epoch_for_offset(offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Notes that a new leader epoch begins at the log's end, before anything is written in it."""
        if leader_epoch != self._latest_epoch:
            self._begin_epoch(leader_epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch at or below the given one, and where it ends; (-1, -1) when unknown."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    @property
    def size_in_bytes(self) -> int:
        return self._segments.size_in_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def segments(self) -> LogSegments:
        """The segments in order; not to be changed."""
        return self._segments

    # Producers and transactions

    def producers(self) -> list[ProducerStateEntry]:
        """The known producers, for DescribeProducers; not to be changed."""
        return list(self._producers.producers.values())

    def expire_producers(self) -> int:
        """Forgets producers that have been silent for producer.id.expiration.ms."""
        return self._producers.expire(self._now_ms())

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap the offsets from `start` up to but without `end`, by last offset."""
        found: list[AbortedTransaction] = []
        for segment in self._segments.starting_with(start):
            for entry in segment.transaction_index.ending_at_or_after(start):
                if entry.first_offset < end:
                    found.append(entry)
                if entry.last_stable_offset >= end:
                    return found
        return found

    # Cutting

    def delete_records_before(self, offset: int) -> int:
        """Moves the log start up to `offset`; whole segments below it go with the next retention run.

        Returns:
            The log start, which is never moved back.

        Raises:
            OffsetOutOfRange: `offset` is above the high watermark.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark, self.name)
        if offset > self.log_start_offset:
            self._move_log_start(offset)
        return self.log_start_offset

    def _move_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self._producers.forget_before(offset)
        try:
            self._epochs.truncate_from_start(offset)
        except OSError as error:
            logger.warning("%s: cannot write the leader epochs: %s", self.name, error)

    def truncate_to(self, offset: int) -> bool:
        """Removes every batch that ends at or after `offset`; returns whether anything was removed.

        Raises:
            KafkaStorageError: the disk failed.
        """
        if offset >= self.log_end_offset:
            return False
        if self.on_truncate is not None:
            self.on_truncate(offset)
        if offset < self._segments.first_base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._flusher.truncated(offset)
        try:
            self.log_end_offset = self._local.truncate_to(offset)
            self._epochs.truncate_from_end(self.log_end_offset)
            self._latest_epoch = self._epochs.latest_epoch
            self._reload_producers()
        except OSError as error:
            raise KafkaStorageError(f"cannot truncate {self.name}: {error.strerror or error}") from error
        self._flusher.truncated(self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        return True

    def _reload_producers(self) -> None:
        self._producers.load_snapshot(self.log_start_offset, self.log_end_offset, self._now_ms())
        if self._producers.map_end_offset < self.log_end_offset:
            replay_producers(list(self._segments), self._producers, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes everything; the next record gets `offset`.

        Raises:
            KafkaStorageError: the disk failed.
        """
        if self.on_truncate is not None:
            self.on_truncate(offset)
        self._flusher.truncated(0)
        first = self._local.create_segment(offset, self.config, self._now_ms())
        try:
            self._local.restart_at(first)
            self._epochs.clear()
            self._producers.clear(offset)
        except OSError as error:
            raise KafkaStorageError(f"cannot truncate {self.name}: {error.strerror or error}") from error
        self._segments.replace_all(first)
        self._latest_epoch = self._epochs.latest_epoch
        self.log_start_offset = self.log_end_offset = self.high_watermark = self._flusher.recovery_point = offset
        self._flusher.names_changed()

    # Retention

    def apply_retention(self) -> int:
        """Deletes whole segments that retention or the log start has overtaken; returns how many.

        Their files get the suffix `.deleted` and are removed by `remove_deleted_files` after file.delete.delay.ms.

        Raises:
            KafkaStorageError: the disk failed.
        """
        now_ms = self._now_ms()
        count = count_deletable(
            self._segments,
            self.config,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            log_end_offset=self.log_end_offset,
            now_ms=now_ms,
        )
        if not count:
            return 0
        try:
            if count == len(self._segments):
                if not self._segments.active.size:
                    count -= 1
                else:
                    self._roll(self.log_end_offset, now_ms)
            if count:
                self._delete_first(count, now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot delete segments of {self.name}: {error.strerror or error}") from error
        return count

    def _delete_first(self, count: int, now_ms: int) -> None:
        # The log start moves first: no read may begin in a segment that is on its way out.
        remaining_base = self._segments.at(count).base_offset
        if remaining_base > self.log_start_offset:
            self._move_log_start(remaining_base)
        self._local.delete_first(count, now_ms + self.config.file_delete_delay_ms)
        self._producers.remove_snapshots(lambda offset: offset < remaining_base)

    # Compaction

    def replace_segments(self, group: GroupCleaned, on_end: Callable[[bool], None]) -> SegmentReplacement:
        """Prepares the exchange of old segments for one that compaction has written; `begin` it.

        Args:
            on_end: called once, with whether the new segment is in use.
        """
        now_ms = self._now_ms()
        new = self._local.create_segment(group.base_offset, self.config, now_ms, log_files.CLEANED, group.size)
        gone = frozenset(group.replaces) - {group.base_offset}
        return SegmentReplacement(
            self._disk,
            self._local,
            new,
            group,
            due_ms=now_ms + self.config.file_delete_delay_ms,
            run_blocking=self._run_blocking,
            on_swap=lambda: self._remove_snapshots_of(gone),
            on_end=on_end,
        )

    def _remove_snapshots_of(self, bases: frozenset[int]) -> None:
        """Removes the producers' snapshots of segments that are gone; nothing waits for it, and nobody would hear of a failure."""
        try:
            self._producers.remove_snapshots(lambda offset: offset in bases)
        except OSError as error:
            logger.warning("%s: the next start removes old snapshots of producers: %s", self.name, error)

    @property
    def has_deleted_files(self) -> bool:
        """Whether files of deleted segments still wait for their removal."""
        return bool(self._local.deleted_files)

    @property
    def log_start_is_inside_a_segment(self) -> bool:
        """Whether the log start needs a checkpoint: the first segment's name does not tell it."""
        return self.log_start_offset > self._segments.first_base_offset

    def remove_deleted_files(self, *, at_once: bool = False) -> None:
        """Removes the files of deleted segments whose delay has passed."""
        if self._local.deleted_files:
            self._local.deleted_files.remove(self._now_ms(), at_once=at_once)

    # Settings and the end

    def directory_renamed(self, directory: str) -> None:
        """Follows a rename of the directory, so that reads that have begun can finish."""
        self._local.directory_renamed(directory)

    def reconfigure(self, config: LogConfig) -> None:
        """Takes new settings; they hold from the next append, roll and retention run on."""
        self.config = config
        self._checks = AppendChecks(config, self.name)
        self._producers.expiration_ms = config.producer_id_expiration_ms
        self._segments.active.index_interval_bytes = config.index_interval_bytes

    def close(self, *, clean: bool = True) -> None:
        """Ends the log. A clean close flushes, writes the producers' snapshot, and needs no recovery at the next open.

        Raises:
            KafkaStorageError: the disk failed; the log is closed, but not cleanly.
        """
        if self._closed:
            return
        try:
            if clean:
                self._close_cleanly()
        finally:
            self._closed = True
            self._local.close()

    def write_index_entries(self) -> None:
        """Shows whoever reads the files of a running broker, such as Kafka's dump-log, the active segment's indexes.

        Raises:
            OSError: the disk refused; the entries stay in memory for the next time.
        """
        if not self._closed:
            self._segments.active.write_index_entries()

    def _close_cleanly(self) -> None:
        if self._flusher.failure is not None:
            raise KafkaStorageError(self._flusher.failure)
        try:
            # Neither indexes nor snapshot are synced: the next start looks whether they fit, and does without if not.
            self._segments.active.write_indexes()
            self._producers.map_end_offset = self.log_end_offset
            self._producers.take_snapshot()
            if self.recovery_point < self.log_end_offset:
                self.flush()
            self.remove_deleted_files(at_once=True)
        except OSError as error:
            raise KafkaStorageError(f"cannot close {self.name}: {error.strerror or error}") from error
