"""Appends batches to a log: every written byte passes here, and the rolling and flushing that follow.

    check the set -> check the producers -> patch offset and epoch -> roll if full -> one pwrite -> account for it in memory
    append_checks    producer_state         record_batch              rolling         log_segment   log_segment, producer_state

`append_as_leader` gives the batches their offsets, `append_as_follower` keeps those that a leader gave. `PartitionLog` holds one
appender; its invariants hold here too. The appender itself keeps the settings, and the producers whose last batch could not be written.
The log's end, the epochs and the producers are in objects that it shares with the `PartitionLog`.

Source: Kafka's `UnifiedLog.append`, `LocalLog.roll`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log.append_checks import AppendChecks, AppendOrigin, Batch, Opened
from barnabas.log.append_info import LOG_APPEND_TIME_OFF, AppendInfo
from barnabas.log.errors import KafkaStorageError, OutOfOrderSequence, RecordListTooLarge, in_words
from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.log.local_log import LocalLog
from barnabas.log.log_config import INT64_MAX, LogConfig
from barnabas.log.log_flusher import LogFlusher
from barnabas.log.log_segment import LogSegment
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import BatchMetadata
from barnabas.log.recovery import apply_batch
from barnabas.log.rolling import should_roll
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.records.control import EndTransactionMarker, parse_control_record
from barnabas.records.errors import CorruptRecord
from barnabas.records.record import iter_records
from barnabas.records.record_batch import (
    CONTROL,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    SEQUENCE_MASK,
    TRANSACTIONAL,
    BatchHeader,
    check_batch,
    length_and_magic,
    patch,
)

logger = logging.getLogger(__name__)


class LogAppender:
    """The appends to one log."""

    __slots__ = (
        "_checks",
        "_config",
        "_epochs",
        "_flusher",
        "_local",
        "_name",
        "_now_ms",
        "_producers",
        "_refused",
        "_segments",
    )

    def __init__(
        self,
        name: str,
        config: LogConfig,
        local: LocalLog,
        epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        flusher: LogFlusher,
        now_ms: Callable[[], int],
    ) -> None:
        """
        Args:
            name: the partition's, for messages.
        """
        self._name = name
        self._local = local
        self._segments = local.segments
        self._epochs = epochs
        self._producers = producers
        self._flusher = flusher
        self._now_ms = now_ms
        # Producers whose last batch the disk did not take.
        self._refused: set[int] = set()
        self.reconfigure(config)

    def __repr__(self) -> str:
        return f"<LogAppender {self._name} log_end={self._local.log_end_offset}>"

    def reconfigure(self, config: LogConfig) -> None:
        """Take new settings; they hold from the next append on."""
        self._config = config
        self._checks = AppendChecks(config, self._name)

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        origin: AppendOrigin,
        guard: VerificationGuard | None,
        transaction_version: int,
        opened: Opened | None = None,
    ) -> AppendInfo:
        """Append a set of whole batches under the next offsets; see `PartitionLog.append_as_leader`."""
        # Before the look for duplicates: a batch whose sync failed is in the log, but a retry of it must not be acknowledged.
        self._check_writable()
        now_ms = self._now_ms()
        view = records if type(records) is memoryview else memoryview(records)
        view, batches = self._checks.check(view, origin, now_ms, opened)
        config = self._config
        size = len(view)
        if size > config.segment_bytes:
            raise RecordListTooLarge(
                f"Message batch size is {size} bytes in append to partition {self._name}, which exceeds the maximum "
                f"configured segment size of {config.segment_bytes}."
            )
        producers = self._producers
        must_verify = config.transaction_partition_verification_enable
        max_timestamp = NO_TIMESTAMP
        next_offset = first_offset = self._local.log_end_offset
        previous: BatchHeader | None = None
        for position, header in batches:
            producer_id = header.producer_id
            if producer_id > NO_PRODUCER_ID:
                attributes = header.attributes
                producer_epoch = header.producer_epoch
                if attributes & CONTROL:
                    self._check_marker(view, position, header, next_offset, transaction_version)
                elif origin is not AppendOrigin.CLIENT:
                    producers.check_unsequenced(
                        producer_id,
                        producer_epoch,
                        next_offset,
                        transactional=bool(attributes & TRANSACTIONAL),
                        guard=guard,
                        must_verify=must_verify,
                    )
                elif (
                    previous is not None
                    and previous.producer_id == producer_id
                    and previous.producer_epoch == producer_epoch
                ):
                    # It follows another batch of its producer in this set, which the producers' state does not know yet.
                    last_sequence = previous.last_sequence
                    if header.base_sequence != (last_sequence + 1) & SEQUENCE_MASK:
                        raise producers.out_of_order(producer_id, header.base_sequence, last_sequence, next_offset)
                else:
                    duplicate = self._check_producer(header, next_offset, guard, must_verify)
                    if duplicate is not None:
                        self._flush_if_due()
                        return _duplicate_of(duplicate)
                previous = header
            patch(view, position, next_offset, leader_epoch)
            next_offset += header.last_offset_delta + 1
            timestamp = header.max_timestamp
            if timestamp > max_timestamp:
                max_timestamp = timestamp
        if leader_epoch != self._epochs.latest_epoch:
            # A larger epoch in the cache is rot: no replica has led in a later epoch than this one does now.
            self.begin_epoch(leader_epoch, first_offset)
        self._write_as_leader(view, batches, first_offset, next_offset, max_timestamp, now_ms)
        log_append_time = now_ms if config.message_timestamp_type == "LogAppendTime" else LOG_APPEND_TIME_OFF
        return AppendInfo(first_offset, next_offset - 1, max_timestamp, log_append_time)

    def _check_producer(
        self, header: BatchHeader, offset: int, guard: VerificationGuard | None, must_verify: bool
    ) -> BatchMetadata | None:
        """Check the producer and the sequence of a client's batch; return the earlier batch that it repeats, None if it is new."""
        producer_id = header.producer_id
        try:
            return self._producers.check(
                producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.last_sequence,
                offset,
                transactional=bool(header.attributes & TRANSACTIONAL),
                guard=guard,
                must_verify=must_verify,
            )
        except OutOfOrderSequence:
            if producer_id not in self._refused:
                raise
            # The producer sent it behind a batch that the disk did not take. A producer that hears of a gap in its sequence begins
            # another epoch, and in that epoch repeats records that other partitions already have.
            raise KafkaStorageError(
                f"the disk did not take the batch of producer {producer_id} before this one to {self._name}"
            ) from None

    def _write_as_leader(
        self,
        view: memoryview,
        batches: list[Batch],
        first_offset: int,
        next_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """Write a set, and remember whose batches the disk did not take."""
        try:
            self._write(view, batches, first_offset, next_offset, max_timestamp, now_ms)
        except KafkaStorageError:
            self._refused |= _sequenced(batches)
            raise
        if self._refused:
            self._refused -= _sequenced(batches)

    def _check_marker(
        self, view: memoryview, position: int, header: BatchHeader, offset: int, transaction_version: int
    ) -> None:
        for record in iter_records(view, position, header=header):
            marker = parse_control_record(record).value
            if isinstance(marker, EndTransactionMarker):
                self._producers.check_marker(
                    header.producer_id, header.producer_epoch, marker.coordinator_epoch, offset, transaction_version
                )

    def append_as_follower(self, records: memoryview | bytes | bytearray, leader_epoch: int) -> AppendInfo:
        """Append batches under the offsets that a leader gave them; see `PartitionLog.append_as_follower`."""
        self._check_writable()
        now_ms = self._now_ms()
        view = memoryview(records)
        next_offset = self._local.log_end_offset
        batches = self._from_leader(view, next_offset, leader_epoch)
        if not batches:
            return AppendInfo(next_offset, next_offset - 1, NO_TIMESTAMP)
        first_offset = batches[0][1].base_offset
        end, last = batches[-1]
        self.forget_empty_epochs()
        for _, header in batches:
            if header.partition_leader_epoch > self._epochs.latest_epoch:
                self.begin_epoch(header.partition_leader_epoch, header.base_offset)
        max_timestamp = max(header.max_timestamp for _, header in batches)
        self._write(view[: end + last.size], batches, first_offset, last.next_offset, max_timestamp, now_ms, True)
        return AppendInfo(first_offset, last.next_offset - 1, max_timestamp)

    def _from_leader(self, view: memoryview, next_offset: int, leader_epoch: int) -> list[Batch]:
        """Check the batches of a leader's response; return those to append, with their positions."""
        batches: list[Batch] = []
        position = 0
        latest_epoch = self._epochs.epoch_for_offset(next_offset - 1)
        while position + PREFIX_BYTES <= len(view):
            length, _ = length_and_magic(view, position)
            if position + length + LOG_OVERHEAD > len(view):
                break
            header = check_batch(view, position)
            epoch = header.partition_leader_epoch
            if epoch > leader_epoch:
                logger.info(
                    "%s: left out batches from offset %d on: their leader epoch %d is above %d, that of the fetch",
                    self._name,
                    header.base_offset,
                    epoch,
                    leader_epoch,
                )
                break
            if header.base_offset < next_offset:
                raise CorruptRecord(
                    f"offset {header.base_offset} in the append to {self._name} is below the next offset {next_offset}"
                )
            if NO_LEADER_EPOCH < epoch < latest_epoch:
                raise CorruptRecord(
                    f"leader epoch {epoch} at offset {header.base_offset} in the append to {self._name} is below epoch "
                    f"{latest_epoch} of the batch before"
                )
            batches.append((position, header))
            next_offset = header.next_offset
            latest_epoch = max(latest_epoch, epoch)
            position += header.size
        return batches

    def forget_empty_epochs(self) -> None:
        """Forget an epoch in which this replica led but wrote nothing: another leader's batches may be older."""
        try:
            self._epochs.truncate_from_end(self._local.log_end_offset)
        except OSError as error:
            # The next change writes the file, or the next start drops the epoch.
            logger.warning("%s: cannot write the leader epochs: %s", self._name, in_words(error))

    def begin_epoch(self, leader_epoch: int, start_offset: int) -> None:
        """Note in memory where a leader epoch begins; its first append writes the file.

        A log that opens drops the epochs without records, so a file that had this one would say nothing. And a broker may begin to lead
        thousands of partitions together.
        """
        self._epochs.assign(leader_epoch, start_offset, write=False)

    def _write_epochs(self) -> None:
        try:
            self._epochs.write()
        except OSError as error:
            # The next change writes the file, or the next start reads the epochs from the batches.
            logger.warning("%s: cannot write the leader epochs: %s", self._name, in_words(error))

    def _check_writable(self) -> None:
        if self._flusher.failure is not None or self._local.is_closed:
            raise KafkaStorageError(self._flusher.failure or f"the log {self._name} is closed")

    def _write(
        self,
        view: memoryview,
        batches: list[Batch],
        first_offset: int,
        next_offset: int,
        max_timestamp: int,
        now_ms: int,
        keep_offsets: bool = False,
    ) -> None:
        """Write a checked and patched set, into a new segment if need be, and account for it in memory."""
        config = self._config
        segment = self._segments.active
        if should_roll(segment, config, len(view), next_offset - 1, max_timestamp, now_ms):
            segment = self.roll(first_offset, now_ms)
        if segment.first_timestamp is None and not segment.size:
            segment.first_timestamp = batches[0][1].max_timestamp
        if self._epochs.awaits_write:
            self._write_epochs()
        start = segment.write(view)
        offset = first_offset
        for position, header in batches:
            if keep_offsets:
                offset = header.base_offset
            last_offset = offset + header.last_offset_delta
            timestamp = header.max_timestamp
            segment.note_batch(start + position, header.batch_length + LOG_OVERHEAD, offset, last_offset, timestamp)
            if header.producer_id > NO_PRODUCER_ID:
                if header.attributes & CONTROL:
                    self._end_transaction(segment, view, position, header._replace(base_offset=offset))
                else:
                    self._producers.update(
                        header.producer_id,
                        header.producer_epoch,
                        header.last_sequence,
                        offset,
                        last_offset,
                        timestamp,
                        transactional=bool(header.attributes & TRANSACTIONAL),
                    )
            offset = last_offset + 1
        self._local.log_end_offset = next_offset
        if config.flush_messages != INT64_MAX:
            self._flush_if_due()

    def _end_transaction(self, segment: LogSegment, view: memoryview, position: int, header: BatchHeader) -> None:
        batch = view[position : position + header.size]
        aborted = apply_batch(self._producers, header, lambda: batch)
        if aborted is not None:
            segment.transaction_index.note(aborted)

    def _flush_if_due(self) -> None:
        """Keep the promise of flush.messages, also for records that recovery brought back unsynced."""
        log_end_offset = self._local.log_end_offset
        if log_end_offset - self._flusher.recovery_point >= self._config.flush_messages:
            self._flusher.flush(log_end_offset, self._now_ms())

    def roll(self, base_offset: int, now_ms: int) -> LogSegment:
        """Begin a new segment, unless the active one is empty and begins there; sync the sealed one elsewhere.

        Raises:
            KafkaStorageError: the disk failed; the active segment stays.
        """
        old = self._segments.active
        if not old.size and old.base_offset == base_offset:
            return old
        self._flusher.settle()
        segment = self._local.create_segment(base_offset, self._config, now_ms)
        self._producers.map_end_offset = self._local.log_end_offset
        try:
            segment.create()
            old.seal()
            snapshot = self._producers.take_snapshot()
        except OSError as error:
            segment.close()
            raise KafkaStorageError(f"cannot roll {self._name}: {error.strerror or error}") from error
        self._segments.add(segment)
        self._flusher.names_changed()
        # Name the sealed segment: a flush may have moved the recovery point to its end before its indexes were complete.
        self._flusher.flush_elsewhere(base_offset, [*old.file_paths(), *([snapshot] if snapshot else [])])
        old.transaction_index.is_synced = True
        return segment


def _sequenced(batches: list[Batch]) -> set[int]:
    """Return the producers of batches that have a sequence."""
    return {header.producer_id for _, header in batches if header.base_sequence >= 0}


def _duplicate_of(batch: BatchMetadata) -> AppendInfo:
    return AppendInfo(batch.first_offset, batch.last_offset, batch.timestamp, batch.timestamp, True)
