"""Compaction of one log's sealed segments into new ones: the work itself.

    first dirty offset ------v                          v------ first uncleanable offset, where a segment begins
    | cleaned before | cleaned | dirty | dirty | dirty | not yet | active |
                               [ the last offset of each key   ]            1. read the dirty part into an OffsetMap
    [ group 1       ] [ group 2                        ]                    2. write each group into one `.cleaned` segment

Of each key the last record up to the map's end stays; all records beyond it stay. Then:

- A record without a value (a tombstone) that is its key's last stays until the delete horizon of its batch; the first cleaning that
  meets it sets the horizon to now + delete.retention.ms (KIP-534). The same holds for a marker of a transaction without data.
- Removed are the data of aborted transactions, the markers of transactions without data, and records without a key.
- A batch without records is removed, except the one with its producer's last sequence (or last marker), and except the last one
  of a new segment: it shows where the segment's offsets end, so that recovery knows that nothing is missing.
- A batch that keeps all its records is copied as it is. Offsets never change.

When the map is full the round ends at the last key that found room, and the next round starts there.

The cleaner reads files that no longer change and writes `.cleaned` files that no reader has yet. They are complete and synced before the
broker hears of them. It needs no open log, so it runs in another process (`cleaner_process`) as well as inline. A kill leaves `.cleaned`
files, which the next opening of the log removes.

Left out: message formats 0 and 1, which Kafka 4 does not write, and splitting segments whose offsets overflow, which those formats caused.

Source: Kafka's `Cleaner`; KIP-58, KIP-98, KIP-534.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from barnabas.log import log_files
from barnabas.log.cleaned_transactions import CleanedTransactions
from barnabas.log.cleaning_task import (
    CleaningDone,
    CleaningEvent,
    CleaningFailed,
    CleaningTask,
    GroupCleaned,
    SourceSegment,
)
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_segment import RELATIVE_OFFSET_MAX, LogSegment
from barnabas.log.offset_map import OffsetMap
from barnabas.log.open_files import OpenFiles
from barnabas.records.batch_filter import RecordSpan, empty_batch, record_spans, rewrite_batch
from barnabas.records.errors import CorruptRecord, RecordError
from barnabas.records.record import records_bytes
from barnabas.records.record_batch import BatchHeader, read_header

WRITE_CHUNK = 1 << 20


def clean_or_fail(
    task: CleaningTask, disk: Disk, *, pace: Callable[[int], None] | None = None
) -> Iterator[CleaningEvent]:
    """As `clean`, but an error becomes the last event."""
    try:
        yield from clean(task, disk, pace=pace)
    except RecordError as error:
        yield CleaningFailed(str(error), is_corrupt=True)
    except OSError as error:
        yield CleaningFailed(f"{error.filename or task.directory}: {error.strerror or error}", is_corrupt=False)
    except (KafkaStorageError, ValueError) as error:
        yield CleaningFailed(str(error), is_corrupt=False)


def clean(
    task: CleaningTask,
    disk: Disk,
    *,
    pace: Callable[[int], None] | None = None,
    seconds: Callable[[], float] = time.monotonic,
) -> Iterator[CleaningEvent]:
    """Clean a log: yield every new segment, then a `CleaningDone`.

    Args:
        pace: called with the size of every chunk read or written; it may wait (log.cleaner.io.max.bytes.per.second).
        seconds: the clock of the statistics.

    Raises:
        OSError, KafkaStorageError: the disk failed, or a segment is gone; `.cleaned` files may be left.
        ValueError: the settings leave no room for a single key.
        RecordError: a segment holds bytes that are not a valid batch.
    """
    yield from _Cleaning(task, disk, pace or (lambda _: None), seconds).run()


def remove_cleaned_files(disk: Disk, directory: str) -> None:
    """Remove the files that an interrupted cleaning has left.

    Raises:
        OSError: the disk failed.
    """
    for name in disk.listdir(directory):
        if name.endswith(log_files.CLEANED):
            with contextlib.suppress(FileNotFoundError):
                disk.remove(f"{directory}/{name}")


def group_by_size(
    sources: list[SourceSegment], segment_bytes: int, segment_index_bytes: int
) -> list[list[SourceSegment]]:
    """Group neighbours whose log bytes, index bytes and range of offsets fit one segment."""
    groups: list[list[SourceSegment]] = []
    size = index_size = time_index_size = 0
    for source in sources:
        group = groups[-1] if groups else None
        if (
            group
            and size + source.size <= segment_bytes
            and index_size + source.index_size <= segment_index_bytes
            and time_index_size + source.time_index_size <= segment_index_bytes
            and (not source.size or source.end_offset - 1 - group[0].base_offset <= RELATIVE_OFFSET_MAX)
        ):
            group.append(source)
            size += source.size
            index_size += source.index_size
            time_index_size += source.time_index_size
        else:
            groups.append([source])
            size, index_size, time_index_size = source.size, source.index_size, source.time_index_size
    return groups


class _Cleaning:
    """One run."""

    def __init__(
        self, task: CleaningTask, disk: Disk, pace: Callable[[int], None], seconds: Callable[[], float]
    ) -> None:
        self._task = task
        self._disk = disk
        self._pace = pace
        self._seconds = seconds
        self._open_files = OpenFiles(4)
        self._map = OffsetMap(task.dedupe_buffer_bytes, task.load_factor)
        self._last_records = {entry.producer_id: entry for entry in task.producers}
        self._bytes_read = self._messages_read = self._bytes_written = self._messages_written = 0
        self._map_bytes_read = self._map_messages_read = self._invalid = 0

    def run(self) -> Iterator[CleaningEvent]:
        task = self._task
        started = self._seconds()
        remove_cleaned_files(self._disk, task.directory)
        self._fill_map()
        indexed = self._seconds()
        end_offset = self._map.latest_offset + 1
        transactions = CleanedTransactions(task.aborted)
        sources = [source for source in task.sources if source.base_offset < end_offset]
        for group in group_by_size(sources, task.segment_bytes, task.segment_index_bytes):
            yield self._clean_group(group, transactions)
        yield CleaningDone(
            end_offset,
            self._bytes_read,
            self._messages_read,
            self._bytes_written,
            self._messages_written,
            self._map_bytes_read,
            self._map_messages_read,
            self._invalid,
            self._map.utilization,
            indexed - started,
            self._seconds() - started,
        )

    def _segment(self, base_offset: int, size: int, suffix: str = "") -> LogSegment:
        return LogSegment(
            self._disk,
            self._open_files,
            self._task.directory,
            base_offset,
            index_interval_bytes=self._task.index_interval_bytes,
            created_ms=self._task.now_ms,
            size=size,
            suffix=suffix,
        )

    def _batches(self, source: SourceSegment, start: int = 0) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield the checked batches of a segment.

        Raises:
            CorruptRecord: not all of the segment is valid batches.
        """
        segment = self._segment(source.base_offset, source.size)
        good = start
        unpaced = 0
        try:
            for position, header, view in segment.checked_batches(start, end_offset=source.end_offset):
                good = position + header.size
                unpaced += header.size
                if unpaced >= WRITE_CHUNK:
                    self._pace(unpaced)
                    unpaced = 0
                yield header, view
            self._pace(unpaced)
        finally:
            segment.close()
        if good != source.size:
            raise CorruptRecord(f"{segment.path} holds no valid batch at position {good}")

    # The map

    def _fill_map(self) -> None:
        task = self._task
        transactions = CleanedTransactions(
            entry for entry in task.aborted if entry.last_offset >= task.first_dirty_offset
        )
        for source in task.sources:
            if source.end_offset > task.first_dirty_offset and not self._map_segment(source, transactions):
                return

    def _map_segment(self, source: SourceSegment, transactions: CleanedTransactions) -> bool:
        """Put the keys of a segment into the map; return False if the map is full."""
        offsets = self._map
        put = offsets.put
        first = self._task.first_dirty_offset
        for header, view in self._batches(source, self._position_of(source, first)):
            self._map_bytes_read += header.size
            if header.is_control:
                transactions.read_control_batch(header, _control_key(header, view))
                self._map_messages_read += 1
            elif transactions.read_batch(header):
                self._map_messages_read += header.record_count
            elif header.last_offset >= first:
                self._map_messages_read += header.record_count
                for span in record_spans(records_bytes(view, 0, header), header):
                    if span.key is not None and span.offset >= first and not put(span.key, span.offset):
                        return False
            if header.last_offset >= first:
                offsets.latest_offset = header.last_offset
        # The segment may end with a hole.
        offsets.latest_offset = source.end_offset - 1
        return True

    def _position_of(self, source: SourceSegment, offset: int) -> int:
        """Return where to begin reading a segment for the records from `offset` on."""
        if offset <= source.base_offset:
            return 0
        segment = self._segment(source.base_offset, source.size)
        try:
            return segment.locate(offset) if segment.offset_index.open_sealed() else 0
        finally:
            segment.close()

    # The new segments

    def _clean_group(self, group: list[SourceSegment], transactions: CleanedTransactions) -> GroupCleaned:
        target = self._segment(group[0].base_offset, 0, log_files.CLEANED)
        try:
            target.create()
            output = _Output(target, self._pace)
            for source in group:
                for header, view in self._batches(source):
                    self._bytes_read += header.size
                    kept = self._cleaned(header, view, transactions, group[-1].end_offset)
                    if kept is not None:
                        count, data = kept
                        self._messages_written += count
                        self._bytes_written += len(data)
                        output.add(data)
            output.flush()
            target.seal()
            for entry in transactions.to_index:
                target.transaction_index.append(entry)
            transactions.to_index.clear()
            for path in target.file_paths():
                with contextlib.suppress(FileNotFoundError):
                    self._disk.sync_file(path)
            last = f"{self._task.directory}/{log_files.file_name(group[-1].base_offset, log_files.LOG)}"
            # Retention counts from this time if no record has a timestamp.
            self._disk.set_modified_ms(target.path, self._disk.modified_ms(last))
        finally:
            target.close()
        return GroupCleaned(group[0].base_offset, target.size, [source.base_offset for source in group])

    def _cleaned(
        self, header: BatchHeader, view: memoryview, transactions: CleanedTransactions, group_end_offset: int
    ) -> tuple[int, bytes | bytearray] | None:
        """Return how many records of a batch stay, and the batch with them; None if the batch is removed."""
        now_ms = self._task.now_ms
        is_control = header.is_control
        if is_control:
            is_needless = transactions.read_control_batch(header, _control_key(header, view))
            discard = is_needless and header.has_delete_horizon and header.base_timestamp <= now_ms
        else:
            is_needless = discard = transactions.read_batch(header)
        self._messages_read += header.record_count
        must_stay = header.next_offset == group_end_offset or self._is_last_of_producer(header)
        if not discard and header.record_count:
            data = records_bytes(view, 0, header)
            spans = list(record_spans(data, header))
            kept = spans if is_control else [span for span in spans if self._stays(span, header)]
            if kept:
                needs_horizon = not header.has_delete_horizon and (
                    is_needless if is_control else any(not span.has_value for span in kept)
                )
                if len(kept) == len(spans) and not needs_horizon:
                    return len(kept), bytes(view)
                horizon = now_ms + self._task.delete_retention_ms if needs_horizon else None
                return len(kept), rewrite_batch(header, data, kept, delete_horizon_ms=horizon)
        return (0, empty_batch(header)) if must_stay else None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_records.get(header.producer_id) if header.has_producer else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _stays(self, span: RecordSpan, header: BatchHeader) -> bool:
        if span.offset > self._map.latest_offset:
            return True
        if span.key is None:
            self._invalid += 1
            return False
        if span.offset < self._map.get(span.key):
            return False
        return span.has_value or not header.has_delete_horizon or self._task.now_ms < header.base_timestamp


class _Output:
    """Collects batches, so that a segment of many small batches takes few large writes."""

    def __init__(self, segment: LogSegment, pace: Callable[[int], None]) -> None:
        self._segment = segment
        self._pace = pace
        self._pending = bytearray()
        self._headers: list[tuple[int, BatchHeader]] = []

    def add(self, batch: bytes | bytearray) -> None:
        position = self._segment.size + len(self._pending)
        self._headers.append((position, read_header(batch)))
        self._pending += batch
        if len(self._pending) >= WRITE_CHUNK:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        segment = self._segment
        segment.write(self._pending)
        for position, header in self._headers:
            segment.note_batch(position, header.size, header.base_offset, header.last_offset, header.max_timestamp)
        self._pace(len(self._pending))
        self._pending = bytearray()
        self._headers.clear()


def _control_key(header: BatchHeader, view: memoryview) -> bytes | None:
    """Return the key of a control batch's record, None if the record was removed."""
    if not header.record_count:
        return None
    return next(record_spans(records_bytes(view, 0, header), header)).key
