"""One partition's log: batches in, byte ranges out.

    log start                          high watermark        log end
    |  segment 0  |  segment 1  |  active segment             |
    ^ deleted from here          ^ rolled          appended here ^

    PartitionLog ──► LogAppender     checks, patches and writes batches
                └──► LocalLog        moves the segments and their files

`read` returns a `LogSlice`, a place in a file rather than bytes.

Invariants:

- log start ≤ high watermark ≤ log end; recovery point ≤ log end. Offsets ascend without overlap.
- Nothing in memory changes before the disk has taken the whole write. A failed append leaves the log as it was.
- Every batch is in exactly one segment; a slice never crosses segments and never splits a batch.
- New index entries may be in memory only; the files follow (see `index_file`).
- An append syncs nothing unless flush.messages asks for it. A roll syncs the sealed segment, outside the append path.

If the disk rejects a write (full, or failing) the append returns KAFKA_STORAGE_ERROR, and the next append tries again: when there is
space again the log accepts writes. Apache Kafka takes the directory offline instead. A failed sync is different: the system may
have dropped unwritten pages, so the log rejects all writes until it has been opened again.

Source: Kafka's `UnifiedLog`, `LocalLog`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log import log_files, timestamp_lookup
from barnabas.log.append_checks import AppendOrigin, Opened
from barnabas.log.append_info import AppendInfo
from barnabas.log.cleaning_task import GroupCleaned
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError, OffsetOutOfRange, in_words
from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.log.local_log import LocalLog
from barnabas.log.log_appender import LogAppender
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import Done, LogFlusher, RunBlocking, ignored, run_inline
from barnabas.log.log_segments import LogSegments
from barnabas.log.log_slice import LogSlice
from barnabas.log.open_files import OpenFiles
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import ProducerStateEntry
from barnabas.log.recovery import LogLoader, reload_producers
from barnabas.log.retention import count_deletable
from barnabas.log.segment_replacement import SegmentReplacement
from barnabas.log.timestamp_lookup import Found, Lookup, TimestampAndOffset
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.log.truncation import truncation

logger = logging.getLogger(__name__)

__all__ = ["AppendInfo", "AppendOrigin", "PartitionLog", "RunBlocking", "TimestampAndOffset", "run_inline"]


class PartitionLog:
    """One partition's log.

    Attributes:
        name: topic and partition, as its directory is called.
        config: the settings; `reconfigure` changes them.
        high_watermark: moved by the partition; at most the log's end.
        recovered: the sizes that recovery read and cut off when the log was opened.
        on_truncate: called before a truncation removes anything; may raise OSError. It lowers the checkpoints of this log.
        future: the copy that is to take this log's place, in another directory; None while the log does not move. Each truncation
            cuts the copy first. The log lets go of a copy that it cannot cut.
    """

    __slots__ = (
        "_appender",
        "_disk",
        "_epochs",
        "_flusher",
        "_local",
        "_now_ms",
        "_producers",
        "_run_blocking",
        "_segments",
        "config",
        "future",
        "high_watermark",
        "log_start_offset",
        "name",
        "on_truncate",
        "recovered",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        open_files: OpenFiles | None = None,
        run_blocking: RunBlocking = run_inline,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        high_watermark: int = 0,
        clean: bool = False,
        cleaned_to: int = 0,
        on_sync_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Open the log in a directory, and recover it unless it was closed cleanly; create missing files.

        Args:
            log_start_offset, recovery_point, high_watermark: from the directory's checkpoints, 0 if unknown.
            clean: the last owner closed the log.
            run_blocking: runs syncs elsewhere and reports back on this thread; after a failed one `on_sync_failure` is called.
            cleaned_to: up to where compaction has been, 0 if unknown: holes below it are not damage.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self.name = log_files.partition_name(directory)
        self.config = config
        self._disk = disk
        self._now_ms = now_ms
        self._run_blocking = run_blocking
        self._epochs = LeaderEpochCache(disk, f"{directory}/{log_files.LEADER_EPOCH_CHECKPOINT}")
        self._producers = ProducerStateManager(disk, directory, expiration_ms=config.producer_id_expiration_ms)
        opened_ms = now_ms()
        open_files = open_files if open_files is not None else OpenFiles()
        loader = LogLoader(
            disk, open_files, directory, config, self._epochs, self._producers, now_ms=opened_ms, cleaned_to=cleaned_to
        )
        try:
            if not disk.exists(directory):
                disk.mkdir(directory)
            loaded = loader.load(log_start_offset=log_start_offset, recovery_point=recovery_point, clean=clean)
        except OSError as error:
            raise KafkaStorageError(f"cannot open the log {directory}: {error.strerror or error}") from error
        self._segments = LogSegments(loaded.segments)
        self._flusher = LogFlusher(
            disk, directory, self._segments, loaded.recovery_point, opened_ms, run_blocking, on_sync_failure
        )
        self._local = LocalLog(
            disk, open_files, directory, self._segments, loaded.log_end_offset, self._flusher, run_blocking
        )
        self._appender = LogAppender(
            self.name, config, self._local, self._epochs, self._producers, self._flusher, now_ms
        )
        self.log_start_offset = loaded.log_start_offset
        self.high_watermark = min(max(high_watermark, loaded.log_start_offset), loaded.log_end_offset)
        self.recovered = loaded.recovered
        self.on_truncate: Callable[[int], None] | None = None
        self.future: PartitionLog | None = None

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.name} {self.log_start_offset}..{self.log_end_offset}"
            f" hw={self.high_watermark} segments={len(self._segments)}>"
        )

    @property
    def directory(self) -> str:
        """Where the log lives; it changes when the log is deleted or set aside."""
        return self._local.directory

    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._local.log_end_offset

    # Appending

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        opened: Opened | None = None,
    ) -> AppendInfo:
        """Append a set of whole batches under the next offsets.

        Args:
            records: the batches, in a writable buffer; offsets and epoch are written into it.
            leader_epoch: the epoch this replica leads in.
            origin: clients may not write control batches, and only their batches have sequences.
            guard, transaction_version: from `begin_verification`, for a transaction's first batch; of one that a marker ends.
            opened: as in `AppendChecks.check`.

        Raises:
            CorruptRecord, InvalidRecord, InvalidRecords, InvalidTimestamp, MessageTooLarge, RecordListTooLarge, OutOfOrderSequence,
            InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced, KafkaStorageError: nothing was appended.
        """
        info = self._appender.append_as_leader(records, leader_epoch, origin, guard, transaction_version, opened)
        info.log_start_offset = self.log_start_offset
        return info

    def append_as_follower(self, records: memoryview | bytes | bytearray, leader_epoch: int) -> AppendInfo:
        """Append batches that a leader has given offsets and epochs; a truncated batch at the end is left out.

        Args:
            leader_epoch: that the Fetch request named. Batches from the first newer one on are left out: the leader has lost its
                leadership meanwhile, and its file has changed while it was sent (KAFKA-18723).

        Raises:
            CorruptRecord: a batch fails its checks, or its offset or leader epoch is below that of the batch before.
            KafkaStorageError: the disk failed; nothing was appended.
        """
        info = self._appender.append_as_follower(records, leader_epoch)
        info.log_start_offset = self.log_start_offset
        return info

    def begin_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Begin to verify the first batch of a transaction; see `ProducerStateManager.begin_verification`."""
        now_ms, bump = self._now_ms(), supports_epoch_bump
        return self._producers.begin_verification(
            producer_id, sequence, producer_epoch, now_ms, supports_epoch_bump=bump
        )

    def forget_verifications(self) -> None:
        """Discard the verifications of a replica that no longer leads."""
        self._producers.verifications.clear()

    def take_verifications(self, other: PartitionLog) -> None:
        """Continue the verifications that have begun for another log of this partition."""
        self._producers.verifications = other._producers.verifications

    def roll(self) -> None:
        """Begin a new segment, unless the active one is empty."""
        if self._segments.active.size:
            self._appender.roll(self.log_end_offset, self._now_ms())

    @property
    def recovery_point(self) -> int:
        """Up to where the log is durable."""
        return self._flusher.recovery_point

    @property
    def last_flush_ms(self) -> int:
        """When the last flush began; until the first one, when the log was opened."""
        return self._flusher.last_flush_ms

    def flush(self) -> None:
        """Make everything appended so far durable; blocks.

        Raises:
            KafkaStorageError: the disk failed; the log takes no more writes.
        """
        self._flusher.flush(self.log_end_offset, self._now_ms())

    def flush_elsewhere(self, on_end: Done = ignored) -> None:
        """As `flush`, but through `run_blocking`: return immediately; the recovery point moves later, then `on_end` is called."""
        if self.recovery_point < self.log_end_offset:
            self._flusher.last_flush_ms = self._now_ms()
            self._flusher.flush_elsewhere(self.log_end_offset, [], on_end)

    # Reading

    def read(self, offset: int, max_bytes: int, *, max_offset: int, min_one: bool = True) -> LogSlice:
        """Find whole batches within one segment; the first of them holds `offset`.

        Args:
            offset: where to begin; the slice may begin with earlier records of the same batch.
            max_bytes: how many bytes at most.
            max_offset: only batches below it: high watermark, last stable offset, or log end.
            min_one: return the first batch even if it is larger than `max_bytes` (KIP-74).

        Returns:
            A slice, of size 0 if there is nothing to read yet.

        Raises:
            OffsetOutOfRange: below the log start or beyond the log end.
            KafkaStorageError: the disk failed.
        """
        local = self._local
        if offset > local.log_end_offset or offset < self.log_start_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, local.log_end_offset, self.name)
        return local.read(offset, max_bytes, max_offset, min_one)

    def offset_for_timestamp(self, timestamp: int, from_offset: int = 0, is_apart: bool = False) -> Found:
        """Return the first record at or after `timestamp`, exact to the record; `timestamp_lookup.Lookup` has the rest."""
        lookup = Lookup(max(self.log_start_offset, from_offset), self.config.max_decompressed_bytes, is_apart)
        return timestamp_lookup.first_at_or_after(self._segments, timestamp, lookup)

    def max_timestamp_offset(self, from_offset: int = 0, is_apart: bool = False) -> Found:
        """Return the first record with the log's largest timestamp (ListOffsets -3); None if no record has one."""
        lookup = Lookup(max(self.log_start_offset, from_offset), self.config.max_decompressed_bytes, is_apart)
        return timestamp_lookup.first_with_largest(self._segments, lookup)

    # Offsets and epochs

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest undecided transaction, None if every transaction is decided."""
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
        """The largest leader epoch in the log, -1 if it has none."""
        return self._epochs.latest_epoch

    @property
    def epoch_entries(self) -> list[tuple[int, int]]:
        """Each leader epoch with its start offset."""
        return self._epochs.entries()

    def epoch_for_offset(self, offset: int) -> int:
        """Return the leader epoch that wrote an offset, -1 if unknown."""
        return self._epochs.epoch_for_offset(offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that a new leader epoch begins at the log's end, before anything is written in it."""
        if leader_epoch != self.latest_epoch:
            self._appender.begin_epoch(leader_epoch, self.log_end_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below the given one, and where it ends; (-1, -1) if unknown."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    @property
    def size_in_bytes(self) -> int:
        return self._segments.size_in_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def segments(self) -> LogSegments:
        """The segments in order; the caller must not change them."""
        return self._segments

    # Producers and transactions

    def producers(self) -> list[ProducerStateEntry]:
        """Return the known producers, for DescribeProducers; the caller must not change them."""
        return list(self._producers.producers.values())

    def expire_producers(self) -> int:
        """Forget producers that have been silent for producer.id.expiration.ms; return how many."""
        return self._producers.expire(self._now_ms())

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap the offsets from `start` up to but without `end`, by last offset."""
        return self._segments.aborted_transactions(start, end)

    # Cutting

    def delete_records_before(self, offset: int) -> int:
        """Move the log start up to `offset`; the next retention run deletes the whole segments below it.

        Returns:
            The log start, which never moves back.

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
            logger.warning("%s: cannot write the leader epochs: %s", self.directory, in_words(error))

    def truncate_to(self, offset: int) -> bool:
        """Remove every batch that ends at or after `offset`; return whether anything was removed.

        Raises:
            KafkaStorageError: the disk failed.
        """
        if offset >= self.log_end_offset:
            self._appender.forget_empty_epochs()
            return False
        if offset < self._segments.first_base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with truncation(self.name, self._flusher, self._truncating, offset):
            self._local.truncate_to(offset)
            self._appender.forget_empty_epochs()
            reload_producers(
                self._segments, self._producers, self.log_start_offset, self.log_end_offset, self._now_ms()
            )
            self._flusher.truncated(self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`.

        Raises:
            KafkaStorageError: the disk failed.
        """
        first = self._local.create_segment(offset, self.config, self._now_ms())
        with truncation(self.name, self._flusher, self._truncating, offset):
            self._flusher.truncated(0)
            self._local.restart_at(first)
            self._epochs.clear()
            self._producers.clear(offset)
        self.log_start_offset = self.high_watermark = offset

    def _truncating(self, offset: int) -> None:
        try:
            if self.future is not None:
                self.future.truncate_to(offset)
        except KafkaStorageError as error:
            logger.error("%s: its copy cannot be cut with it: %s", self.name, error.message)
            self.future = None
        if self.on_truncate is not None:
            self.on_truncate(offset)

    # Retention

    def apply_retention(self) -> int:
        """Delete whole segments that retention or the log start has passed; return how many.

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
                    self._appender.roll(self.log_end_offset, now_ms)
            if count:
                self._delete_first(count, now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot delete segments of {self.name}: {error.strerror or error}") from error
        return count

    def _delete_first(self, count: int, now_ms: int) -> None:
        # The log start moves first: no read may begin in a segment that is being deleted.
        remaining_base = self._segments.at(count).base_offset
        if remaining_base > self.log_start_offset:
            self._move_log_start(remaining_base)
        self._local.delete_first(count, now_ms + self.config.file_delete_delay_ms)
        self._producers.remove_snapshots(lambda offset: offset < remaining_base)

    # Compaction

    def replace_segments(self, group: GroupCleaned, on_end: Callable[[bool], None]) -> SegmentReplacement:
        """Prepare the exchange of old segments for a compacted one; the caller must `begin` it.

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
            on_swap=lambda: self._producers.remove_snapshots_of(gone),
            on_end=on_end,
        )

    @property
    def has_deleted_files(self) -> bool:
        """Whether files of deleted segments still have to be removed."""
        return bool(self._local.deleted_files)

    @property
    def log_start_is_inside_a_segment(self) -> bool:
        """Whether the log start needs a checkpoint, because it is not the first segment's base offset."""
        return self.log_start_offset > self._segments.first_base_offset

    def remove_deleted_files(self, *, at_once: bool = False) -> None:
        """Remove the files of deleted segments whose delay has passed."""
        if self._local.deleted_files:
            self._local.deleted_files.remove(self._now_ms(), at_once=at_once)

    # Settings and the end

    def directory_renamed(self, directory: str) -> None:
        """Follow a rename of the directory: reads that have begun can finish, and the log can be written to."""
        self._local.directory_renamed(directory)
        self._epochs.directory_renamed(directory)
        self._producers.directory_renamed(directory)

    def reconfigure(self, config: LogConfig) -> None:
        """Take new settings; they hold from the next append, roll and retention run on."""
        self.config = config
        self._appender.reconfigure(config)
        self._producers.expiration_ms = config.producer_id_expiration_ms
        self._segments.active.index_interval_bytes = config.index_interval_bytes

    def close(self, *, clean: bool = True) -> None:
        """Close the log. A clean close flushes, writes the producers' snapshot, and needs no recovery at the next open.

        Raises:
            KafkaStorageError: the disk failed; the log is closed, but not cleanly.
        """
        if self._local.is_closed:
            return
        try:
            if clean:
                self._close_cleanly()
        finally:
            self._local.close()

    def write_index_entries(self) -> bool:
        """Write the active segment's new index entries, for tools that read the files of a running broker; return whether there were any.

        Raises:
            OSError: the disk failed; the entries stay in memory for the next time.
        """
        return not self._local.is_closed and self._segments.active.write_index_entries()

    def _close_cleanly(self) -> None:
        if self._flusher.failure is not None:
            raise KafkaStorageError(self._flusher.failure)
        try:
            # Neither the other indexes nor the snapshot are synced: the next start checks them, and rebuilds those that do not fit.
            self._segments.active.write_indexes()
            for segment in self._segments:
                segment.transaction_index.sync()
            self._producers.map_end_offset = self.log_end_offset
            self._producers.take_snapshot()
            self._flusher.settle()
            if self.recovery_point < self.log_end_offset:
                self.flush()
            self.remove_deleted_files(at_once=True)
        except OSError as error:
            raise KafkaStorageError(f"cannot close {self.name}: {error.strerror or error}") from error
