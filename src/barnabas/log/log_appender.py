"""How a log grows (data plane): the way of every written byte, and the rolling and flushing that come with it.

    check the set -> judge the producers -> roll if full -> patch offset and epoch -> one pwrite -> note it in memory
    append_checks    producer_state         rolling         record_batch                             log_segment, producer_state

`append_as_leader` gives the batches their offsets, `append_as_follower` takes those that a leader gave. What holds of both is said in
`partition_log`, whose half this is: no other class is derived from it, and it is not used alone.

Source: Kafka's `UnifiedLog.append`, `LocalLog.roll`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log import log_files
from barnabas.log.append_checks import AppendChecks, AppendOrigin, Batch
from barnabas.log.append_info import LOG_APPEND_TIME_OFF, AppendInfo
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError, RecordListTooLarge
from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.log.local_log import LocalLog
from barnabas.log.log_config import INT64_MAX, LogConfig
from barnabas.log.log_flusher import LogFlusher, RunBlocking, run_inline
from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.log.open_files import OpenFiles
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import SEQUENCE_MASK, BatchMetadata
from barnabas.log.recovery import LogLoader, apply_batch
from barnabas.log.rolling import should_roll
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.records.control import EndTransactionMarker, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import CONTROL, TRANSACTIONAL, BatchHeader, CorruptRecord, check_batch, patch

logger = logging.getLogger(__name__)

NO_TIMESTAMP = -1


class LogAppender:
    """The half of a `PartitionLog` that opens it, and that grows it."""

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
    ) -> None:
        """Opens the log in a directory, recovering it unless it was closed cleanly; creates what is missing.

        Args:
            log_start_offset, recovery_point, high_watermark: from the directory's checkpoints, 0 when unknown.
            clean: the last owner closed the log.
            run_blocking: runs syncs elsewhere and reports back on this thread.
            cleaned_to: up to where compaction has been, 0 when unknown: holes below it are no damage.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self.name = directory.rpartition("/")[2]
        self.config = config
        self._now_ms = now_ms
        open_files = open_files if open_files is not None else OpenFiles()
        self._checks = AppendChecks(config, self.name)
        self._epochs = LeaderEpochCache(disk, f"{directory}/{log_files.LEADER_EPOCH_CHECKPOINT}")
        self._producers = ProducerStateManager(disk, directory, expiration_ms=config.producer_id_expiration_ms)
        loader = LogLoader(
            disk,
            open_files,
            directory,
            config,
            self._epochs,
            self._producers,
            now_ms=now_ms(),
            cleaned_to=cleaned_to,
        )
        try:
            if not disk.exists(directory):
                disk.mkdir(directory)
            loaded = loader.load(log_start_offset=log_start_offset, recovery_point=recovery_point, clean=clean)
        except OSError as error:
            raise KafkaStorageError(f"cannot open the log {directory}: {error.strerror or error}") from error
        self._segments = LogSegments(loaded.segments)
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self._flusher = LogFlusher(disk, directory, self._segments, loaded.recovery_point, run_blocking)
        self._local = LocalLog(disk, open_files, directory, self._segments, self._flusher, run_blocking)
        self.recovered_bytes_cut = loaded.bytes_cut
        # Moved by the partition; it never passes the log end.
        self.high_watermark = min(max(high_watermark, self.log_start_offset), self.log_end_offset)
        self.last_flush_ms = now_ms()
        # Told before a truncation removes anything: compaction must not put back what is cut off.
        self.on_truncate: Callable[[int], None] | None = None
        self._disk = disk
        self._run_blocking = run_blocking
        self._latest_epoch = self._epochs.latest_epoch
        self._closed = False

    # Appending

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Appends a set of whole batches under the next offsets.

        Args:
            records: the batches, in a writable buffer; offsets and epoch are written into it.
            leader_epoch: the epoch this replica leads in.
            origin: who writes; clients may not write control batches, and only their batches have sequences.
            guard: from `begin_verification`, for the first batch of a transaction.
            transaction_version: of the transaction that a marker ends.

        Raises:
            CorruptRecord, InvalidRecord, InvalidRecords, InvalidTimestamp, MessageTooLarge, RecordListTooLarge,
            OutOfOrderSequence, InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced: nothing was appended,
            the codes are Kafka's.
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
            if header[9] >= 0:
                if header[5] & CONTROL:
                    self._check_marker(view, position, header, next_offset, transaction_version)
                elif origin is not AppendOrigin.CLIENT:
                    self._producers.check_unsequenced(
                        header[9],
                        header[10],
                        next_offset,
                        transactional=bool(header[5] & TRANSACTIONAL),
                        guard=guard,
                        must_verify=config.transaction_partition_verification_enable,
                    )
                elif previous is not None and previous[9:11] == header[9:11]:
                    # Behind another batch of its producer in this set, which the producers' state does not know yet.
                    if header[11] != (previous.last_sequence + 1) & SEQUENCE_MASK:
                        raise self._producers.out_of_order(header[9], header[11], previous.last_sequence, next_offset)
                else:
                    duplicate = self._producers.check(
                        header[9],
                        header[10],
                        header[11],
                        header.last_sequence,
                        next_offset,
                        transactional=bool(header[5] & TRANSACTIONAL),
                        guard=guard,
                        must_verify=config.transaction_partition_verification_enable,
                    )
                    if duplicate is not None:
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

    def _check_marker(
        self, view: memoryview, position: int, header: BatchHeader, offset: int, transaction_version: int
    ) -> None:
        for record in iter_records(view[position : position + header.size]):
            marker = parse_control_record(record)
            if isinstance(marker.value, EndTransactionMarker):
                self._producers.check_marker(
                    header.producer_id,
                    header.producer_epoch,
                    marker.value.coordinator_epoch,
                    offset,
                    transaction_version,
                )

    def begin_verification(
        self, producer_id: int, sequence: int, producer_epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Begins to verify the first batch of a transaction; see `ProducerStateManager.begin_verification`."""
        return self._producers.begin_verification(
            producer_id, sequence, producer_epoch, self._now_ms(), supports_epoch_bump=supports_epoch_bump
        )

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
        if self._flusher.failure is not None or self._closed:
            raise KafkaStorageError(self._flusher.failure or f"the log {self.name} is closed")

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
        segment = self._segments.active
        if should_roll(
            segment,
            self.config,
            size=len(view),
            last_offset=next_offset - 1,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
        ):
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
            segment.transaction_index.note(aborted)

    # Rolling

    def roll(self) -> None:
        """Begins a new segment, unless the active one is empty."""
        if self._segments.active.size:
            self._roll(self.log_end_offset, self._now_ms())

    def _roll(self, base_offset: int, now_ms: int) -> LogSegment:
        old = self._segments.active
        if not old.size and old.base_offset == base_offset:
            return old
        segment = self._local.create_segment(base_offset, self.config, now_ms)
        self._producers.map_end_offset = self.log_end_offset
        try:
            segment.create()
            old.seal()
            snapshot = self._producers.take_snapshot()
        except OSError as error:
            segment.close()
            raise KafkaStorageError(f"cannot roll {self.name}: {error.strerror or error}") from error
        self._segments.add(segment)
        self._flusher.names_changed()
        # The sealed segment by name: a flush may have moved the recovery point to its end before its indexes were whole.
        self._flusher.flush_elsewhere(base_offset, [*old.file_paths(), *([snapshot] if snapshot else [])])
        return segment

    # Flushing

    @property
    def recovery_point(self) -> int:
        """Up to where the log is durable."""
        return self._flusher.recovery_point

    def flush(self) -> None:
        """Makes everything appended so far durable, and moves the recovery point; blocks.

        Raises:
            KafkaStorageError: the disk failed; the log takes no more writes.
        """
        self._flusher.flush(self.log_end_offset)
        self.last_flush_ms = self._now_ms()

    def flush_elsewhere(self) -> None:
        """As `flush`, but through `run_blocking`: returns at once, and the recovery point moves later."""
        if self.recovery_point < self.log_end_offset:
            self.last_flush_ms = self._now_ms()
            self._flusher.flush_elsewhere(self.log_end_offset, [])
