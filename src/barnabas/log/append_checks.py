"""The checks that a leader makes on a set of batches before it appends them.

Fast path (one batch, CreateTime, the client's codec): only header and CRC are checked, and no record is decoded. Length, magic and CRC
must be right, the counts must agree, the base offset must be 0. A client's batch must not be a control batch, and needs a
sequence if it has a producer. Its base and largest timestamps must be within bounds, its size within max.message.bytes.

Records are decoded only if

- the topic is compacted: records without key are rejected, and the error names each of them (KIP-467);
- message.timestamp.before.max.ms is finite, or the header's timestamps are out of bounds: the error names the records;
- the topic's codec differs from the batch's: the batch is compressed again.

Opening a large batch takes too long for the event loop. If the caller can open records elsewhere, `check` raises `RecordsToOpen` in
place of opening them: the caller runs `open` in an executor and appends again with its result. Nothing is appended before, so a crash
meanwhile loses nothing that was acknowledged. The caller sees to it that no later request of the client overtakes this one. Whatever
may change in between (the end of the log, the producer's sequence, the leader) is checked by the append itself; if the settings
have changed, the records are opened once more.

A producer whose header contradicts its records harms only those records: readers check them.

Source: Kafka's `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`; KIP-32, KIP-467, KIP-937.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.log.errors import InvalidRecords, InvalidTimestamp, MessageTooLarge
from barnabas.log.large_batch import is_large
from barnabas.log.log_config import INT64_MAX, LogConfig
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.errors import CorruptRecord, DecompressedTooLarge, InvalidRecord
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    check_batch,
    check_client_batch,
    iter_batches,
    stamp_log_append_time,
)

RECORD_ERRORS_SHOWN = 3

RECOMPRESSED_ON_THE_SPOT = 16_384
"""Bytes of a batch that is compressed again."""

Batch = tuple[int, BatchHeader]


class AppendOrigin(enum.Enum):
    """Which part of the broker appends; it decides what is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT = "raft"


class Opened(NamedTuple):
    """Records that `RecordsToOpen.open` has opened.

    Attributes:
        checks: the checks they have passed; None if they are not opened yet, but can be.
        view: the bytes to append.
        batches: position and header of each batch in them.
    """

    checks: AppendChecks | None
    view: memoryview = memoryview(b"")
    batches: list[tuple[int, BatchHeader]] = []


NOT_OPENED = Opened(None)


class RecordsToOpen(Exception):
    """Records that must be opened before their append, and that are too large for the event loop."""

    def __init__(self, checks: AppendChecks, view: memoryview, now_ms: int) -> None:
        super().__init__()
        self._checks = checks
        self._view = view
        self._now_ms = now_ms

    def copy(self) -> None:
        """Copy the records: the connection uses its buffer again after this turn of the loop."""
        self._view = memoryview(bytearray(self._view))

    def open(self) -> Opened:
        """Open the records; blocks, and may run in any thread. Raises as `AppendChecks.check`."""
        return self._checks.open(self._view, self._now_ms)


class AppendChecks:
    """The checks of one log, with its settings prepared."""

    __slots__ = ("_after_max_ms", "_config", "_open_records", "_target_codec", "_where")

    def __init__(self, config: LogConfig, where: str) -> None:
        self._config = config
        self._where = where
        self._target_codec = -1 if config.compression_type == "producer" else _codec(config.compression_type)
        # Whether each record must be checked although nothing is wrong with the header.
        self._open_records = config.compact or config.message_timestamp_before_max_ms != INT64_MAX
        self._after_max_ms = config.message_timestamp_after_max_ms

    def check(
        self, view: memoryview, origin: AppendOrigin, now_ms: int, opened: Opened | None = None
    ) -> tuple[memoryview, list[Batch]]:
        """Check every batch of a set, and stamp or recompress it if the settings say so.

        Args:
            opened: the records if they are opened already; None if the caller cannot open them elsewhere.

        Returns:
            The bytes to append, the caller's own unless recompressed, and position and header of each batch in them.

        Raises:
            CorruptRecord, InvalidRecord, MessageTooLarge, InvalidTimestamp, InvalidRecords.
            RecordsToOpen: only with `opened`.
        """
        config = self._config
        if opened is not None and opened.checks is self:
            stamped = self._stamp(opened.view, opened.batches, now_ms) if config.log_append_time else opened.batches
            return opened.view, stamped
        batches: list[Batch] = []
        from_client = origin is AppendOrigin.CLIENT
        unlimited = origin is AppendOrigin.RAFT
        position = 0
        end = len(view)
        recompress = False
        while position < end:
            header = check_batch(view, position)
            size = header.batch_length + LOG_OVERHEAD
            attributes = header.attributes
            if from_client:
                check_client_batch(header)
                if header.base_offset:
                    raise InvalidRecord(
                        f"The baseOffset of the record batch in the append to {self._where} should be 0, but it is "
                        f"{header.base_offset}"
                    )
                if attributes & LOG_APPEND_TIME:
                    raise InvalidTimestamp(
                        "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
                    )
            if not unlimited:
                if size > config.max_message_bytes:
                    raise self._too_large(size)
                if self._target_codec >= 0 and attributes & COMPRESSION_MASK != self._target_codec:
                    recompress = True
            batches.append((position, header))
            position += size
        if not batches:
            raise CorruptRecord(f"the append to {self._where} holds no record batch")
        if from_client:
            if config.message_timestamp_type == "LogAppendTime":
                if config.compact:
                    self._check_records(view, batches, now_ms, opened)
            elif self._open_records:
                self._check_records(view, batches, now_ms, opened)
            else:
                latest = now_ms + self._after_max_ms
                for _, header in batches:
                    if header.max_timestamp > latest or header.base_timestamp > latest:
                        self._check_records(view, batches, now_ms, opened)
                        raise InvalidTimestamp(self._timestamp_out_of_range(header.max_timestamp, 0, now_ms))
        if recompress:
            if opened is not None:
                self._leave_if_large(view, batches, now_ms, RECOMPRESSED_ON_THE_SPOT)
            view, batches = self._recompress(view, batches)
        if config.message_timestamp_type == "LogAppendTime" and not unlimited:
            batches = self._stamp(view, batches, now_ms)
        return view, batches

    def open(self, view: memoryview, now_ms: int) -> Opened:
        """Check a client's batches with their records; see `RecordsToOpen`."""
        return Opened(self, *self.check(view, AppendOrigin.CLIENT, now_ms))

    def _leave_if_large(self, view: memoryview, batches: list[Batch], now_ms: int, max_bytes: int = INT64_MAX) -> None:
        """Raise RecordsToOpen if a batch is large."""
        if any(is_large(header, max_bytes) for _, header in batches):
            raise RecordsToOpen(self, view, now_ms)

    def _too_large(self, size: int) -> MessageTooLarge:
        return MessageTooLarge(
            f"The record batch size in the append to {self._where} is {size} bytes which exceeds the maximum "
            f"configured value of {self._config.max_message_bytes})."
        )

    def _timestamp_out_of_range(self, timestamp: int, offset: int, now_ms: int) -> str:
        config = self._config
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        return (
            f"Timestamp {timestamp} of message with offset {offset} is out of range. "
            f"The timestamp should be within [{max(earliest, -(2**63))}, {min(latest, INT64_MAX)}]"
        )

    def _check_records(self, view: memoryview, batches: list[Batch], now_ms: int, opened: Opened | None) -> None:
        """Decode the records; raise the error that names each bad record."""
        if opened is not None:
            self._leave_if_large(view, batches, now_ms)
        config = self._config
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        check_timestamps = not config.log_append_time
        keyless: list[tuple[int, str]] = []
        untimely: list[tuple[int, str]] = []
        for position, header in batches:
            for index, record in enumerate(self._records(view, position, header)):
                if config.compact and record.key is None:
                    message = f"Compacted topic cannot accept message without key in topic partition {self._where}"
                    keyless.append((index, message))
                elif (
                    check_timestamps and record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest
                ):
                    message = self._timestamp_out_of_range(record.timestamp, record.offset, now_ms)
                    untimely.append((index, message))
        if keyless:
            raise InvalidRecords(_summary(keyless), keyless)
        if untimely:
            raise InvalidTimestamp("One or more records have been rejected due to invalid timestamp", untimely)

    def _records(self, view: memoryview, position: int, header: BatchHeader) -> Iterator[Record]:
        try:
            yield from iter_records(view, position, header=header, max_bytes=self._config.max_decompressed_bytes)
        except DecompressedTooLarge as error:
            raise MessageTooLarge(f"{self._where}: {error.message}") from None

    def _stamp(self, view: memoryview, batches: list[Batch], now_ms: int) -> list[Batch]:
        stamped: list[Batch] = []
        for position, header in batches:
            stamp_log_append_time(view, position, now_ms)
            stamped.append(
                (position, header._replace(max_timestamp=now_ms, attributes=header.attributes | LOG_APPEND_TIME))
            )
        return stamped

    def _recompress(self, view: memoryview, batches: list[Batch]) -> tuple[memoryview, list[Batch]]:
        """Build the set again with the topic's codec; control batches stay as they are."""
        config = self._config
        codec = Compression(self._target_codec)
        level = config.compression_level(config.compression_type)
        rebuilt = bytearray()
        for position, header in batches:
            size = header.size
            if header.is_control or header.attributes & COMPRESSION_MASK == codec:
                rebuilt += view[position : position + size]
                continue
            batch = build_batch(
                (
                    (record.timestamp, record.key, record.value, record.headers)
                    for record in self._records(view, position, header)
                ),
                base_offset=header.base_offset,
                leader_epoch=header.partition_leader_epoch,
                compression=codec,
                level=level,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                transactional=header.is_transactional,
            )
            if len(batch) > config.max_message_bytes:
                raise self._too_large(len(batch))
            rebuilt += batch
        result = memoryview(rebuilt)
        return result, list(iter_batches(result))


def _codec(name: str) -> int:
    return int(Compression.from_name("none" if name == "uncompressed" else name))


def _summary(errors: list[tuple[int, str]]) -> str:
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message={message!r})" for index, message in errors[:RECORD_ERRORS_SHOWN]
    )
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, and only showing the "
        f"first three errors at most: [{shown}]"
    )
