"""One partition's log: batches in, byte ranges out (data plane).

    log start                          high watermark        log end
    |  segment 0  |  segment 1  |  active segment             |
    ^ deleted from here          ^ rolled          appended here ^

`append_as_leader` is the way of every produced byte: check the set (`append_checks`), judge the producer's sequence
(`producer_state`), roll the segment if it is full, write offset and leader epoch into the caller's buffer, one
`pwrite`, and note the batch in memory. `read` answers with a `LogSlice`, a place in a file rather than bytes.

Invariants:

- log start ≤ high watermark ≤ log end; recovery point ≤ log end. Offsets ascend without overlap.
- Nothing in memory changes before the disk has taken the whole write. A failed append leaves the log as it was.
- Every batch ends up in exactly one segment; a slice never crosses segments and never splits a batch.
- Index entries may exist in memory only; files follow on roll, flush and close (see `offset_index`).
- Nothing is synced on append unless flush.messages asks for it. A roll syncs the sealed segment, outside the append path.

A disk that refuses a write (full, or failing) gives KAFKA_STORAGE_ERROR, and the next append tries again: when space
returns the log goes on. Apache Kafka takes the directory offline instead. A failed sync is different: the system may
have dropped what it could not write, so the log refuses all writes until it has been opened again.

Left out here: compaction, tiered storage, and the verification of transactions with their coordinator.

Source: Kafka's `UnifiedLog`, `LocalLog`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from barnabas.log import log_files
from barnabas.log.append_checks import AppendChecks, AppendOrigin, Batch
from barnabas.log.disk import Disk, parent_dir
from barnabas.log.errors import KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.log.log_config import INT64_MAX, LogConfig
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.log_slice import LogSlice
from barnabas.log.offset_index import ENTRY_SIZE as INDEX_ENTRY_SIZE
from barnabas.log.open_files import OpenFiles
from barnabas.log.producer_state import SEQUENCE_MASK, BatchMetadata, ProducerStateEntry, ProducerStateManager
from barnabas.log.recovery import LogLoader, apply_batch, replay_producers
from barnabas.log.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.checksum import crc32c
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BatchHeader, CorruptRecord, check_batch, patch

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1
LOG_APPEND_TIME_OFF = -1

__all__ = ["AppendInfo", "AppendOrigin", "PartitionLog", "TimestampAndOffset"]


class AppendInfo:
    """What became of an append.

    `log_append_time_ms` is -1 with CreateTime. For a duplicate the offsets are those of the first time.
    """

    __slots__ = (
        "base_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_start_offset: int,
        max_timestamp: int,
        log_append_time_ms: int = LOG_APPEND_TIME_OFF,
        is_duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_start_offset = log_start_offset
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        self.is_duplicate = is_duplicate

    def __repr__(self) -> str:
        return f"<AppendInfo {self.base_offset}..{self.last_offset}{' duplicate' if self.is_duplicate else ''}>"


class TimestampAndOffset(NamedTuple):
    """A record found by its timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


RunBlocking = Callable[[Callable[[], None], Callable[[BaseException | None], None]], None]


def run_inline(work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
    """Does blocking work at once: for tests, tools, and a simulated disk."""
    try:
        work()
    except OSError as error:
        done(error)
    else:
        done(None)


class PartitionLog:
    """One partition's log. Create it with `open`."""

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
    ) -> None:
        """Opens the log in a directory, recovering it unless it was closed cleanly; creates what is missing.

        Args:
            log_start_offset, recovery_point, high_watermark: from the directory's checkpoints, 0 when unknown.
            clean: the last owner closed the log.
            run_blocking: runs syncs elsewhere and reports back on this thread.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self._disk = disk
        self.directory = directory
        self.name = directory.rpartition("/")[2]
        self.config = config
        self._now_ms = now_ms
        self._open_files = open_files if open_files is not None else OpenFiles()
        self._run_blocking = run_blocking
        self._checks = AppendChecks(config, self.name)
        self._epochs = LeaderEpochCache(disk, f"{directory}/{log_files.LEADER_EPOCH_CHECKPOINT}")
        self._producers = ProducerStateManager(disk, directory, expiration_ms=config.producer_id_expiration_ms)
        loader = LogLoader(disk, self._open_files, directory, config, self._epochs, self._producers, now_ms=now_ms())
        try:
            if not disk.exists(directory):
                disk.mkdir(directory)
            loaded = loader.load(log_start_offset=log_start_offset, recovery_point=recovery_point, clean=clean)
        except OSError as error:
            raise KafkaStorageError(f"cannot open the log {directory}: {error.strerror or error}") from error
        self._segments: list[LogSegment] = loaded.segments
        self._bases: list[int] = [segment.base_offset for segment in loaded.segments]
        self._active: LogSegment = loaded.segments[-1]
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.recovered_bytes_cut = loaded.bytes_cut
        # Moved by the partition; it never passes the log end.
        self.high_watermark = min(max(high_watermark, self.log_start_offset), self.log_end_offset)
        self.last_flush_ms = now_ms()
        self._latest_epoch = self._epochs.latest_epoch
        # Files created, renamed or removed in the directory so far, and how many of these changes a sync has made durable.
        self._name_changes = 1
        self._name_changes_synced = 0
        self._sync_failure: str | None = None
        # Counts truncations, so that a sync that began before one does not move the recovery point after it.
        self._truncations = 0
        self._closed = False
        # Files that have been renamed to .deleted, and when they may go.
        self._deleted_files: list[tuple[int, tuple[str, ...]]] = []

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self.name} {self.log_start_offset}..{self.log_end_offset}"
            f" hw={self.high_watermark} segments={len(self._segments)}>"
        )

    # Appending

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Appends a set of whole batches under the next offsets.

        Args:
            records: the batches, in a writable buffer; offsets and epoch are written into it.
            leader_epoch: the epoch this replica leads in.
            origin: who writes; clients may not write control batches.

        Raises:
            CorruptRecord, InvalidRecord, InvalidRecords, InvalidTimestamp, MessageTooLarge, RecordListTooLarge,
            OutOfOrderSequence, InvalidProducerEpoch: nothing was appended, the codes are Kafka's.
            KafkaStorageError: the disk refused; nothing was appended.
        """
        # Before the look for duplicates: a batch whose sync failed is in the log, yet must not be acknowledged to a retry.
        self._check_writable()
        now_ms = self._now_ms()
        view = records if type(records) is memoryview else memoryview(records)
        view, batches = self._checks.check(view, origin, now_ms)
        size = len(view)
        config = self.config
        if size > config.segment_bytes:
            raise RecordListTooLarge(
                f"Message batch size is {size} bytes in append to partition {self.name}, which exceeds the maximum "
                f"configured segment size of {config.segment_bytes}."
            )
        max_timestamp = batches[0][1][8]
        next_offset = first_offset = self.log_end_offset
        previous: BatchHeader | None = None
        for position, header in batches:
            if header[9] >= 0 and not header[5] & 0x20:
                if previous is not None and previous[9:11] == header[9:11]:
                    # Behind another batch of its producer in this set, which the producers' state does not know yet.
                    if header[11] != (previous.last_sequence + 1) & SEQUENCE_MASK:
                        raise self._producers.out_of_order(header[9], header[11], previous.last_sequence, next_offset)
                else:
                    duplicate = self._producers.check(
                        header[9], header[10], header[11], header.last_sequence, next_offset
                    )
                    if duplicate is not None and origin is AppendOrigin.CLIENT:
                        self._flush_if_due()
                        return self._duplicate(duplicate)
                previous = header
            patch(view, position, next_offset, leader_epoch)
            next_offset += header[6] + 1
            if header[8] > max_timestamp:
                max_timestamp = header[8]
        if leader_epoch != self._latest_epoch:
            # A larger one in the cache is rot: nobody has led in a later epoch than this replica does now.
            self._begin_epoch(leader_epoch, first_offset)
        self._write(view, batches, first_offset, next_offset, max_timestamp, now_ms)
        log_append_time = now_ms if config.message_timestamp_type == "LogAppendTime" else LOG_APPEND_TIME_OFF
        return AppendInfo(first_offset, next_offset - 1, self.log_start_offset, max_timestamp, log_append_time)

    def append_as_follower(self, records: memoryview | bytes | bytearray) -> AppendInfo:
        """Appends batches that a leader has given offsets and epochs; a truncated batch at the end is left out.

        Raises:
            CorruptRecord: a batch fails its checks, or its offsets do not ascend from the log's end.
            KafkaStorageError: the disk refused; nothing was appended.
        """
        self._check_writable()
        now_ms = self._now_ms()
        view = memoryview(records)
        batches: list[Batch] = []
        position = 0
        next_offset = self.log_end_offset
        first_offset: int | None = None
        max_timestamp = NO_TIMESTAMP
        while position + 12 <= len(view):
            if position + 12 + int.from_bytes(view[position + 8 : position + 12], "big") > len(view):
                break
            header = check_batch(view, position)
            if header.base_offset < next_offset:
                raise CorruptRecord(
                    f"offset {header.base_offset} in the append to {self.name} is below the next offset {next_offset}"
                )
            if first_offset is None:
                first_offset = header.base_offset
            batches.append((position, header))
            next_offset = header.next_offset
            max_timestamp = max(max_timestamp, header.max_timestamp)
            position += header.size
        if first_offset is None:
            return AppendInfo(self.log_end_offset, self.log_end_offset - 1, self.log_start_offset, NO_TIMESTAMP)
        for _, header in batches:
            if header.partition_leader_epoch > self._latest_epoch:
                self._begin_epoch(header.partition_leader_epoch, header.base_offset)
        self._write(view[:position], batches, first_offset, next_offset, max_timestamp, now_ms, keep_offsets=True)
        return AppendInfo(first_offset, next_offset - 1, self.log_start_offset, max_timestamp)

    def _check_writable(self) -> None:
        if self._sync_failure is not None or self._closed:
            raise KafkaStorageError(self._sync_failure or f"the log {self.name} is closed")

    def _duplicate(self, batch: BatchMetadata) -> AppendInfo:
        return AppendInfo(
            batch.first_offset, batch.last_offset, self.log_start_offset, batch.timestamp, batch.timestamp, True
        )

    def _begin_epoch(self, leader_epoch: int, start_offset: int) -> None:
        try:
            self._epochs.assign(leader_epoch, start_offset)
        except OSError as error:
            # In memory the epoch has begun; the file follows with the next change, or from the batches.
            logger.warning("%s: cannot write the leader epochs: %s", self.name, error)
        self._latest_epoch = self._epochs.latest_epoch

    def _write(
        self,
        view: memoryview,
        batches: list[Batch],
        first_offset: int,
        next_offset: int,
        max_timestamp: int,
        now_ms: int,
        *,
        keep_offsets: bool = False,
    ) -> None:
        """Writes a checked and patched set, rolling first if need be, and takes it into account."""
        segment = self._active
        if self._should_roll(segment, len(view), next_offset - 1, max_timestamp, now_ms):
            segment = self._roll(first_offset, now_ms)
        if segment.first_timestamp is None and not segment.size:
            segment.first_timestamp = batches[0][1][8]
        start = segment.write(view)
        offset = first_offset
        for position, header in batches:
            size = header[1] + 12
            if keep_offsets:
                offset = header[0]
            last_offset = offset + header[6]
            segment.note_batch(start + position, size, offset, last_offset, header[8])
            if header[9] >= 0:
                if header[5] & 0x20:
                    self._end_transaction(segment, view, position, header._replace(base_offset=offset))
                else:
                    self._producers.update(
                        header[9],
                        header[10],
                        header.last_sequence,
                        offset,
                        last_offset,
                        header[8],
                        transactional=bool(header[5] & 0x10),
                    )
            offset = last_offset + 1
        self.log_end_offset = next_offset
        self._flush_if_due()

    def _flush_if_due(self) -> None:
        """Keeps what flush.messages promises of an acknowledgement, also when recovery brought the records back unsynced."""
        flush_messages = self.config.flush_messages
        if flush_messages != INT64_MAX and self.log_end_offset - self.recovery_point >= flush_messages:
            self.flush()

    def _end_transaction(self, segment: LogSegment, view: memoryview, position: int, header: BatchHeader) -> None:
        batch = view[position : position + header.size]
        aborted = apply_batch(self._producers, header, lambda: batch)
        if aborted is not None:
            segment.transaction_index.append(aborted)

    # Rolling

    def _should_roll(self, segment: LogSegment, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        config = self.config
        if segment.size > config.segment_bytes - size:
            return True
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if not segment.size:
            return False
        first = segment.first_timestamp
        if first is None:
            first = segment.load_first_timestamp()
        if first is not None and first >= 0 and max_timestamp >= 0:
            waited = max_timestamp - first
        else:
            waited = now_ms - segment.created_ms
        if waited > config.segment_ms - self._jitter_ms(segment):
            return True
        entries = config.segment_index_bytes // INDEX_ENTRY_SIZE
        if segment.offset_index.entries >= entries:
            return True
        return segment.time_index.entries >= config.segment_index_bytes // TIME_ENTRY_SIZE - 1

    def _jitter_ms(self, segment: LogSegment) -> int:
        """How much earlier this segment rolls by time, so that not all logs of a topic roll at once."""
        most = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return crc32c(f"{self.name}/{segment.base_offset}".encode()) % most if most > 0 else 0

    def roll(self) -> None:
        """Begins a new segment, unless the active one is empty."""
        if self._active.size:
            self._roll(self.log_end_offset, self._now_ms())

    def _roll(self, base_offset: int, now_ms: int) -> LogSegment:
        old = self._active
        if not old.size and old.base_offset == base_offset:
            return old
        segment = self._create_segment(base_offset, now_ms)
        self._producers.map_end_offset = self.log_end_offset
        try:
            segment.create()
            old.seal()
            snapshot = self._producers.take_snapshot()
        except OSError as error:
            segment.close()
            raise KafkaStorageError(f"cannot roll {self.name}: {error.strerror or error}") from error
        self._segments.append(segment)
        self._bases.append(base_offset)
        self._active = segment
        self._name_changes += 1
        self._flush_elsewhere(base_offset, [snapshot] if snapshot else [])
        return segment

    def _create_segment(self, base_offset: int, now_ms: int) -> LogSegment:
        return LogSegment(
            self._disk,
            self._open_files,
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            created_ms=now_ms,
        )

    # Flushing

    def flush(self) -> None:
        """Makes everything appended so far durable, and moves the recovery point; blocks.

        Raises:
            KafkaStorageError: the disk failed; the log takes no more writes.
        """
        if self.recovery_point >= self.log_end_offset and self._name_changes_synced == self._name_changes:
            return
        offset = self.log_end_offset
        name_changes = self._name_changes
        work = self._sync_work(offset, [])
        try:
            work()
        except OSError as error:
            self._sync_failed(error)
            raise KafkaStorageError(self._sync_failure or "") from error
        self._flushed(offset, self._truncations, name_changes)

    def flush_elsewhere(self) -> None:
        """As `flush`, but through `run_blocking`: returns at once, and the recovery point moves later."""
        if self.recovery_point < self.log_end_offset:
            self._flush_elsewhere(self.log_end_offset, [])

    def _flush_elsewhere(self, offset: int, more_paths: list[str]) -> None:
        truncations = self._truncations
        name_changes = self._name_changes
        work = self._sync_work(offset, more_paths)

        def done(error: BaseException | None) -> None:
            if error is None:
                self._flushed(offset, truncations, name_changes)
            elif isinstance(error, FileNotFoundError):
                # Deleted or renamed under way: what is gone needs no sync, and the next flush sees to the rest.
                pass
            else:
                self._sync_failed(error)

        self._run_blocking(work, done)

    def _sync_work(self, offset: int, more_paths: list[str]) -> Callable[[], None]:
        """Writes pending index entries, and returns what remains: syncs by path, safe in another thread."""
        paths = list(more_paths)
        try:
            for segment in self._segments[max(self._slot(self.recovery_point), 0) :]:
                if segment.base_offset >= offset and segment.base_offset > self.recovery_point:
                    break
                segment.write_indexes()
                paths.extend(segment.sync_paths())
        except OSError as error:
            raise KafkaStorageError(f"cannot write the indexes of {self.name}: {error}") from error
        disk = self._disk
        # Two flushes may overlap, one in another thread: each syncs the names until one of them has reported that it is done.
        directory = None if self._name_changes_synced == self._name_changes else self.directory

        def work() -> None:
            for path in paths:
                disk.sync_file(path)
            if directory is not None:
                disk.sync_dir(directory)
                disk.sync_dir(parent_dir(directory))

        return work

    def _flushed(self, offset: int, truncations: int, name_changes: int) -> None:
        self._name_changes_synced = max(self._name_changes_synced, name_changes)
        if truncations == self._truncations and offset > self.recovery_point:
            self.recovery_point = offset
        self.last_flush_ms = self._now_ms()

    def _sync_failed(self, error: BaseException) -> None:
        self._name_changes += 1
        self._sync_failure = f"a sync of {self.name} failed: {error}; it takes no more writes until it is opened again"
        logger.error("%s", self._sync_failure)

    # Reading

    def _slot(self, offset: int) -> int:
        return bisect_right(self._bases, offset) - 1

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
        active = self._active
        if offset >= max_offset:
            return LogSlice(active, active.size, 0)
        slot = len(self._bases) - 1
        if offset < active.base_offset:
            slot = bisect_right(self._bases, offset) - 1
        try:
            while True:
                segment = self._segments[slot]
                start = segment.locate(offset)
                if start < segment.size or segment is active:
                    break
                # The rest of the segment has been compacted away or cut: its successor goes on.
                slot += 1
                offset = self._bases[slot]
                if offset >= max_offset:
                    return LogSlice(segment, start, 0)
            last_slot = slot + 1 == len(self._bases)
            next_base = self.log_end_offset if last_slot else self._bases[slot + 1]
            limit = segment.size if max_offset >= next_base else segment.locate(max_offset)
            end = segment.end_of_read(start, limit, max_bytes, min_one) if start < limit else start
            if end == limit and max_offset <= next_base:
                segment.remember(max_offset, end)
        except OSError as error:
            raise KafkaStorageError(f"cannot read {self.name}: {error.strerror or error}") from error
        return LogSlice(segment, start, end - start)

    def offset_for_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record at or after `timestamp`, exact to the record; None when all are older."""
        for segment in self._segments_from(self.log_start_offset):
            if segment.size and segment.max_timestamp >= timestamp:
                found = self._find_in_segment(segment, timestamp)
                if found is not None:
                    return found
        return None

    def _segments_from(self, offset: int) -> list[LogSegment]:
        return self._segments[max(self._slot(offset), 0) :]

    def _find_in_segment(self, segment: LogSegment, timestamp: int) -> TimestampAndOffset | None:
        after = max(self.log_start_offset, segment.base_offset)
        entry = segment.time_index.last_before(timestamp)
        if entry is not None and segment.batch_has_timestamp(entry[1], entry[0]):
            after = max(after, entry[1])
        for position, header in segment.headers(segment.locate(after)):
            if header.max_timestamp < timestamp or header.last_offset < self.log_start_offset:
                continue
            for record in iter_records(segment.read_batch(position, header)):
                if record.timestamp >= timestamp and record.offset >= self.log_start_offset:
                    return TimestampAndOffset(record.offset, record.timestamp, header.partition_leader_epoch)
        return None

    def max_timestamp_offset(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp of the log (ListOffsets -3); None when no record has one."""
        best: LogSegment | None = None
        for segment in self._segments_from(self.log_start_offset):
            if segment.size and segment.max_timestamp > (best.max_timestamp if best else NO_TIMESTAMP):
                best = segment
        return None if best is None else self._find_in_segment(best, best.max_timestamp)

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
        return sum(segment.size for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    # Producers and transactions

    def producers(self) -> list[ProducerStateEntry]:
        """The known producers, for DescribeProducers; not to be changed."""
        return list(self._producers.producers.values())

    def expire_producers(self) -> int:
        """Forgets producers that have been silent for producer.id.expiration.ms."""
        return self._producers.expire(self._now_ms()) if self._producers.producers else 0

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap the offsets from `start` up to but without `end`, by last offset."""
        found: list[AbortedTransaction] = []
        for segment in self._segments_from(start):
            for entry in segment.transaction_index.entries():
                if entry.last_offset >= start and entry.first_offset < end:
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
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return True
        self._truncations += 1
        try:
            while self._segments[-1].base_offset > offset:
                self._drop_segment(self._segments.pop())
                self._bases.pop()
            self._active = self._segments[-1]
            self._active.truncate_to(offset)
            self._active.transaction_index.truncate_to(offset)
            self.log_end_offset = self._active.next_offset()
            self._epochs.truncate_from_end(self.log_end_offset)
            self._latest_epoch = self._epochs.latest_epoch
            self._reload_producers()
        except OSError as error:
            raise KafkaStorageError(f"cannot truncate {self.name}: {error.strerror or error}") from error
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.high_watermark = min(self.high_watermark, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        return True

    def _reload_producers(self) -> None:
        self._producers.load_snapshot(self.log_start_offset, self.log_end_offset, self._now_ms())
        if self._producers.map_end_offset < self.log_end_offset:
            replay_producers(self._segments, self._producers, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes everything; the next record gets `offset`.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self._truncations += 1
        try:
            for segment in self._segments:
                self._drop_segment(segment)
            self._active = self._create_segment(offset, self._now_ms())
            self._active.create()
            self._epochs.clear()
            self._producers.clear(offset)
        except OSError as error:
            raise KafkaStorageError(f"cannot truncate {self.name}: {error.strerror or error}") from error
        self._segments, self._bases = [self._active], [offset]
        self._latest_epoch = self._epochs.latest_epoch
        self.log_start_offset = self.log_end_offset = self.high_watermark = self.recovery_point = offset
        self._name_changes += 1

    def _drop_segment(self, segment: LogSegment) -> None:
        segment.close()
        for path in segment.file_paths():
            if self._disk.exists(path):
                self._disk.remove(path)

    # Retention

    def apply_retention(self) -> int:
        """Deletes whole segments that retention or the log start has overtaken; returns how many.

        Their files get the suffix `.deleted` and are removed by `remove_deleted_files` after file.delete.delay.ms.

        Raises:
            KafkaStorageError: the disk failed.
        """
        now_ms = self._now_ms()
        count = self._below_log_start()
        if self.config.delete:
            count = max(count, self._beyond_retention_ms(now_ms), self._beyond_retention_bytes())
        if not count:
            return 0
        try:
            if count == len(self._segments):
                if not self._active.size:
                    count -= 1
                else:
                    self._roll(self.log_end_offset, now_ms)
            if count:
                self._delete_first(count, now_ms)
        except OSError as error:
            raise KafkaStorageError(f"cannot delete segments of {self.name}: {error.strerror or error}") from error
        return count

    def _end_of(self, slot: int) -> int:
        return self._bases[slot + 1] if slot + 1 < len(self._bases) else self.log_end_offset

    def _below_log_start(self) -> int:
        count = 0
        while count + 1 < len(self._bases) and self._bases[count + 1] <= self.log_start_offset:
            count += 1
        return count

    def _beyond_retention_ms(self, now_ms: int) -> int:
        retention_ms = self.config.retention_ms
        count = 0
        if retention_ms < 0:
            return count
        for slot, segment in enumerate(self._segments):
            if self._end_of(slot) > self.high_watermark or not segment.size:
                break
            if now_ms - segment.largest_timestamp() <= retention_ms:
                break
            count += 1
        return count

    def _beyond_retention_bytes(self) -> int:
        retention_bytes = self.config.retention_bytes
        count = 0
        if retention_bytes < 0:
            return count
        excess = self.size_in_bytes - retention_bytes
        for slot, segment in enumerate(self._segments):
            if self._end_of(slot) > self.high_watermark or not segment.size or excess < segment.size:
                break
            excess -= segment.size
            count += 1
        return count

    def _delete_first(self, count: int, now_ms: int) -> None:
        gone = self._segments[:count]
        remaining_base = self._bases[count]
        # The log start moves first: no read may begin in a segment that is on its way out.
        if remaining_base > self.log_start_offset:
            self._move_log_start(remaining_base)
        del self._segments[:count]
        del self._bases[:count]
        due = now_ms + self.config.file_delete_delay_ms
        for segment in gone:
            self._deleted_files.append((due, segment.rename_to_deleted()))
        self._producers.remove_snapshots(lambda offset: offset < remaining_base)
        self._name_changes += 1

    @property
    def has_deleted_files(self) -> bool:
        """Whether files of deleted segments still wait for their removal."""
        return bool(self._deleted_files)

    @property
    def log_start_is_inside_a_segment(self) -> bool:
        """Whether the log start needs a checkpoint: the first segment's name does not tell it."""
        return self.log_start_offset > self._bases[0]

    def remove_deleted_files(self, *, at_once: bool = False) -> None:
        """Removes the files of deleted segments whose delay has passed."""
        if not self._deleted_files:
            return
        now_ms = self._now_ms()
        due = [path for when, paths in self._deleted_files if at_once or when <= now_ms for path in paths]
        self._deleted_files = [entry for entry in self._deleted_files if not at_once and entry[0] > now_ms]
        if not due:
            return
        disk = self._disk

        def work() -> None:
            for path in due:
                if disk.exists(path):
                    disk.remove(path)

        def done(error: BaseException | None) -> None:
            if error is not None and not isinstance(error, FileNotFoundError):
                # The next start removes what is left with this suffix.
                logger.error("%s: cannot remove deleted segments: %s", self.name, error)

        if at_once:
            run_inline(work, done)
        else:
            self._run_blocking(work, done)

    # Settings and the end

    def directory_renamed(self, directory: str) -> None:
        """Follows a rename of the directory, so that reads that have begun can finish."""
        self.directory = directory
        for segment in self._segments:
            segment.path = f"{directory}/{segment.path.rpartition('/')[2]}"

    def reconfigure(self, config: LogConfig) -> None:
        """Takes new settings; they hold from the next append, roll and retention run on."""
        self.config = config
        self._checks = AppendChecks(config, self.name)
        self._producers.expiration_ms = config.producer_id_expiration_ms
        self._active.index_interval_bytes = config.index_interval_bytes

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
            for segment in self._segments:
                segment.close()

    def _close_cleanly(self) -> None:
        if self._sync_failure is not None:
            raise KafkaStorageError(self._sync_failure)
        try:
            self._active.write_indexes(final=True)
            self._producers.map_end_offset = self.log_end_offset
            snapshot = self._producers.take_snapshot()
            if self.recovery_point < self.log_end_offset or snapshot:
                self.flush()
                if snapshot:
                    self._disk.sync_file(snapshot)
                    self._disk.sync_dir(self.directory)
            self.remove_deleted_files(at_once=True)
        except OSError as error:
            raise KafkaStorageError(f"cannot close {self.name}: {error.strerror or error}") from error
