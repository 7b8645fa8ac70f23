"""Opens a log's directory: checks its files, keeps the good ones, and rebuilds the rest.

    list the directory           leftovers of deletions and of atomic writes are removed, interrupted swaps are finished
    each segment, in order       after an unclean stop, from the recovery point's segment on: read whole, cut at the first bad
                                 batch, indexes rebuilt. Otherwise: the indexes' shape and the tail behind the last
                                 index entry are checked, and the segment is rebuilt in the same way if they do not fit
    a cut in the unflushed part  all later segments are removed, as Kafka does: they follow a hole. The same if a
                                 segment ends before the next begins, unless it shows traces of compaction
    a cut in the flushed part    later segments are kept: they were flushed, and readers skip a hole as after compaction
    log start                    checkpoint, if it lies inside the log; else the first segment
    leader epochs                from their file, or from the batches if the file is incomplete, older, or contradicts a batch
    producers                    newest usable snapshot, then the batches after it

The base offset and the leader epoch lie outside a batch's CRC. A batch behind a hole in the offsets is kept if another batch
follows it, since compaction leaves such holes. The last one before a cut must not follow a hole. The last batch of an active segment may
follow one only in a compacted topic, or where the log was compacted: compaction never touches an active segment, but a follower's, and
that of a copy, has the holes of the log that it was read from.

Leader epochs never decrease in a log. Where one does in the unflushed part, a power cut has undone a truncation but kept what was
written after it: the older batches are cut off. Kafka keeps them. barnabas syncs a truncation before it writes behind it (`log_flusher`),
so only other writers leave such a log, and disks that forget a sync.

Nothing here depends on the order in which the crashed process's unsynced writes reached the disk.

Source: Kafka's `LogLoader`, `UnifiedLog.rebuildProducerState`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.log import log_files
from barnabas.log.disk import Disk
from barnabas.log.leader_epoch_cache import LeaderEpochCache
from barnabas.log.log_config import LogConfig
from barnabas.log.log_segment import LogSegment
from barnabas.log.open_files import OpenFiles
from barnabas.log.producer_state import ProducerStateManager
from barnabas.log.producer_state_entry import NO_OFFSET
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.control import ControlRecordType, EndTransactionMarker, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    MAGIC,
    PREFIX_BYTES,
    BatchHeader,
    length_and_magic,
)

logger = logging.getLogger(__name__)

_OFFSET_BYTES = 8
SEGMENT_SUFFIXES = frozenset(
    {log_files.LOG, log_files.INDEX, log_files.TIME_INDEX, log_files.TRANSACTION_INDEX, log_files.SNAPSHOT}
)


def ends_torn(segment: LogSegment, next_offset: int) -> bool:
    """Return whether a rebuilt segment's file ends with one incomplete batch: the write was torn in which a process died.

    Args:
        next_offset: no batch behind the last good one may be below it.
    """
    file = segment.file()
    tail = file.size() - segment.size
    head = file.pread(min(tail, PREFIX_BYTES), segment.size)
    if len(head) >= _OFFSET_BYTES and int.from_bytes(head[:_OFFSET_BYTES], signed=True) < next_offset:
        return False  # As where the system has lost a page, which is zeros.
    if len(head) < PREFIX_BYTES:
        return 0 < tail < BATCH_OVERHEAD
    length, magic = length_and_magic(head)
    return magic == MAGIC and length + LOG_OVERHEAD > tail


class Recovered(NamedTuple):
    """The work after an unclean stop: how much was read whole, and how much of it was cut off.

    Attributes:
        is_damaged: whether something is missing that the end of a process does not take: it tears at most the write that it died in,
            and so leaves at most one incomplete batch, at the end of the log.
    """

    segments: int = 0
    bytes_read: int = 0
    bytes_cut: int = 0
    is_damaged: bool = False


@dataclass(slots=True)
class Recovery:
    """How far the recovery of a directory is.

    Attributes:
        logs: how many logs there are; `done` of them are recovered.
        segments: how many segments were read whole; they had `bytes_read` bytes, of which `bytes_cut` were cut off.
        damaged: logs from which something is missing that the end of a process does not take.
    """

    logs: int = 0
    done: int = 0
    segments: int = 0
    bytes_read: int = 0
    bytes_cut: int = 0
    damaged: list[str] = field(default_factory=list)

    def add(self, log: Recovered) -> None:
        """Count one more recovered log."""
        self.done += 1
        self.segments += log.segments
        self.bytes_read += log.bytes_read
        self.bytes_cut += log.bytes_cut


@dataclass(slots=True)
class LoadedLog:
    """The contents of a directory."""

    segments: list[LogSegment]
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    recovered: Recovered


class LogLoader:
    """Opens one directory."""

    def __init__(
        self,
        disk: Disk,
        open_files: OpenFiles,
        directory: str,
        config: LogConfig,
        epochs: LeaderEpochCache,
        producers: ProducerStateManager,
        *,
        now_ms: int,
        cleaned_to: int = 0,
    ) -> None:
        """
        Args:
            cleaned_to: up to where compaction has been, from its checkpoint; 0 if never, or unknown.
        """
        self._disk = disk
        self._open_files = open_files
        self._directory = directory
        self._config = config
        self._epochs = epochs
        self._producers = producers
        self._now_ms = now_ms
        self._cleaned_to = cleaned_to
        self._segments_rebuilt = 0
        self._bytes_read = 0
        self._bytes_cut = 0
        self._is_damaged = False
        self._saw_marker = False
        self._recovery_point = 0
        self._log_start_offset = 0
        # Of the batch before, None until a segment is rebuilt.
        self._leader_epoch: int | None = None
        self._epochs_contradict = False

    def load(self, *, log_start_offset: int, recovery_point: int, clean: bool) -> LoadedLog:
        """Open the directory; create the first segment if the directory has no segment.

        Args:
            log_start_offset: from the checkpoint, 0 if unknown.
            recovery_point: up to where the log was flushed, 0 if unknown.
            clean: the last owner closed the log, so nothing needs recovery.
        """
        self._recovery_point, self._log_start_offset = recovery_point, log_start_offset
        bases = self._list()
        epochs_known = self._epochs.load()
        segments = self._open_segments(bases, clean)
        if not segments:
            first = self._new_segment(log_start_offset, 0)
            first.create()
            segments = [first]
        log_end_offset = segments[-1].next_offset()
        if not segments[0].base_offset <= log_start_offset <= log_end_offset:
            log_start_offset = segments[0].base_offset
        self._load_epochs(segments, epochs_known, log_start_offset, log_end_offset)
        self._load_producers(segments, log_start_offset, log_end_offset)
        if clean and not self._segments_rebuilt:
            recovery_point = log_end_offset
        recovered = Recovered(self._segments_rebuilt, self._bytes_read, self._bytes_cut, self._is_damaged)
        return LoadedLog(segments, log_start_offset, log_end_offset, min(recovery_point, log_end_offset), recovered)

    def _list(self) -> list[int]:
        """Remove leftovers; return the base offsets of the segments."""
        bases: list[int] = []
        snapshots: list[int] = []
        others: list[tuple[int, str]] = []
        names = self._disk.listdir(self._directory)
        if any(name.endswith((log_files.CLEANED, log_files.SWAP)) for name in names):
            self._finish_swaps(names)
            names = self._disk.listdir(self._directory)
        for name in names:
            if name.endswith((log_files.DELETED, ".tmp")):
                self._remove(name)
                continue
            parsed = log_files.parse_file_name(name)
            if parsed is None or parsed[1] not in SEGMENT_SUFFIXES:
                continue
            if parsed[1] == log_files.LOG:
                bases.append(parsed[0])
            elif parsed[1] == log_files.SNAPSHOT:
                snapshots.append(parsed[0])
            else:
                others.append((parsed[0], name))
        known = frozenset(bases)
        for offset, name in others:
            if offset not in known:
                self._remove(name)
        self._producers.found_snapshots(snapshots)
        return sorted(bases)

    def _finish_swaps(self, names: list[str]) -> None:
        """Finish a compaction's replacement of segments that a crash has interrupted.

        `.cleaned` files are incomplete: they are removed, with the `.swap` files at or above them, which belong to the same
        replacement. The other `.swap` files are complete: the files they replace are removed, and they lose the suffix.
        """
        cleaned = [name for name in names if name.endswith(log_files.CLEANED)]
        limit = min((int(name[:20]) for name in cleaned if name[:20].isdecimal()), default=None)
        swaps = []
        for name in names:
            if name.endswith(log_files.SWAP) and name[:20].isdecimal():
                if limit is not None and int(name[:20]) >= limit:
                    self._remove(name)
                else:
                    swaps.append(name)
        for name in cleaned:
            self._remove(name)
        for name in swaps:
            if name.endswith(log_files.LOG + log_files.SWAP):
                base = int(name[:20])
                segment = self._new_segment(base, 0)
                segment.path = f"{self._directory}/{name}"
                segment.size = segment.file().size()
                end = max((header.next_offset for _, header in segment.headers()), default=base)
                segment.close()
                for other in names:
                    parsed = log_files.parse_file_name(other)
                    if parsed is None or parsed[1] == log_files.SNAPSHOT or not base <= parsed[0] < end:
                        continue
                    # A file of the same name is replaced by the renames below.
                    if parsed[0] > base or other + log_files.SWAP not in names:
                        self._remove(other)
        for name in swaps:
            target = name.removesuffix(log_files.SWAP)
            self._disk.rename(f"{self._directory}/{name}", f"{self._directory}/{target}")

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._disk.remove(f"{self._directory}/{name}")

    def _new_segment(self, base: int, size: int) -> LogSegment:
        return LogSegment(
            self._disk,
            self._open_files,
            self._directory,
            base,
            index_interval_bytes=self._config.index_interval_bytes,
            created_ms=self._now_ms,
            size=size,
        )

    # Segments

    def _open_segments(self, bases: list[int], clean: bool) -> list[LogSegment]:
        segments: list[LogSegment] = []
        for index, base in enumerate(bases):
            segment = self._new_segment(base, 0)
            segment.size = segment.file().size()
            segment.transaction_index.note_present()
            is_last = index + 1 == len(bases)
            next_base = None if is_last else bases[index + 1]
            flushed = clean or (next_base is not None and next_base <= self._recovery_point)
            is_cleaned = next_base is not None and next_base <= self._cleaned_to
            segments.append(segment)
            if flushed and (
                segment.open_existing() if next_base is None else segment.open_sealed(next_base, is_cleaned=is_cleaned)
            ):
                self._leader_epoch = None
                continue
            if self._leader_epoch is None:
                self._leader_epoch = self._last_epoch(segments[:-1])
            is_whole = self._rebuild(segment, next_base)
            if is_last:
                break
            if not is_whole and not flushed:
                self._remove_later(bases[index + 1 :])
                break
            segment.seal()
        if segments and segments[-1].offset_index.is_sealed:
            segments[-1].open_existing()
        return segments

    def _rebuild(self, segment: LogSegment, next_base: int | None) -> bool:
        """Rebuild a segment's indexes from its batches, and cut it behind the last good one.

        Returns:
            False if something was cut, or is missing in front of the next segment.
        """
        before = segment.size
        self._segments_rebuilt += 1
        self._bytes_read += before
        expected = segment.base_offset
        doubtful: int | None = None
        is_compacted = False
        for header, _ in segment.rebuild(end_offset=next_base, follows=self._follows):
            if doubtful is not None:
                # Another batch follows, so compaction has made the hole.
                is_compacted = True
            doubtful = None if header.base_offset == expected else header.base_offset
            is_compacted = is_compacted or header.record_count != header.last_offset_delta + 1
            expected = header.next_offset
            self._saw_marker = self._saw_marker or (header.is_control and header.has_producer)
            if header.partition_leader_epoch >= 0 and header.last_offset >= self._log_start_offset:
                known = self._epochs.epoch_for_offset(max(header.base_offset, self._log_start_offset))
                self._epochs_contradict = self._epochs_contradict or known != header.partition_leader_epoch
        is_torn = next_base is None and doubtful is None and segment.size < before and ends_torn(segment, expected)
        segment.cut_tail()
        has_holes = self._config.compact or (doubtful is not None and doubtful <= self._cleaned_to)
        if doubtful is not None and (segment.size < before or (next_base is None and not has_holes)):
            segment.truncate_to(doubtful)
        cut = before - segment.size
        if cut:
            self._bytes_cut += cut
            logger.warning("%s: cut %d bytes behind the last good batch", segment.path, cut)
        is_cleaned = is_compacted or (next_base is not None and next_base <= self._cleaned_to)
        is_whole = not cut and (next_base is None or expected == next_base or is_cleaned)
        self._is_damaged = self._is_damaged or not (is_whole or is_torn)
        return is_whole

    def _follows(self, header: BatchHeader) -> bool:
        """Return False for an unflushed batch of an older leader epoch than the batch before it."""
        epoch = header.partition_leader_epoch
        before = self._leader_epoch
        if before is not None and 0 <= epoch < before and header.base_offset >= self._recovery_point:
            logger.warning(
                "%s: offset %d of leader epoch %d follows epoch %d: a truncation was undone by a crash",
                self._directory,
                header.base_offset,
                epoch,
                before,
            )
            return False
        self._leader_epoch = epoch
        return True

    def _remove_later(self, bases: list[int]) -> None:
        for base in bases:
            logger.warning("%s: removing segment %d, which follows a cut", self._directory, base)
            for path in self._new_segment(base, 0).file_paths():
                with contextlib.suppress(FileNotFoundError):
                    self._disk.remove(path)

    # Leader epochs

    def _load_epochs(self, segments: list[LogSegment], known: bool, log_start: int, log_end: int) -> None:
        epochs = self._epochs
        before = epochs.entries() if known else None
        if not known or self._epochs_contradict or self._last_epoch(segments) > epochs.latest_epoch:
            epochs.clear(write=False)
            for segment in segments:
                for _, header in segment.headers():
                    if header.partition_leader_epoch > epochs.latest_epoch:
                        epochs.assign(header.partition_leader_epoch, header.base_offset, write=False)
        epochs.truncate_from_end(log_end, write=False)
        epochs.truncate_from_start(log_start, write=False)
        if epochs.entries() != (before or []):
            epochs.write()

    def _last_epoch(self, segments: list[LogSegment]) -> int:
        for segment in reversed(segments):
            epoch = -1
            last = segment.offset_index.last_entry()
            for _, header in segment.headers(last[1] if last else 0):
                epoch = header.partition_leader_epoch
            if epoch >= 0:
                return epoch
        return -1

    # Producers

    def _load_producers(self, segments: list[LogSegment], log_start: int, log_end: int) -> None:
        producers = self._producers
        bases = frozenset(segment.base_offset for segment in segments)
        snapshots = producers.snapshots
        newest = snapshots[-1] if snapshots else -1
        # Snapshots of segments that are gone are useless, except the newest.
        producers.remove_snapshots(lambda offset: offset not in bases and offset != newest)
        if reload_producers(segments, producers, log_start, log_end, self._now_ms):
            producers.expire(self._now_ms)
        producers.map_end_offset = log_end
        if self._saw_marker:
            self._rebuild_transaction_indexes(segments)

    def _rebuild_transaction_indexes(self, segments: list[LogSegment]) -> None:
        """Rebuild the transaction indexes that recovery has emptied."""
        emptied = [segment for segment in segments if not segment.transaction_index.is_kept]
        if not emptied:
            return
        scratch = ProducerStateManager(self._disk, self._directory, expiration_ms=self._producers.expiration_ms)
        first = emptied[0].base_offset
        for segment in segments:
            for position, header in segment.headers():
                aborted = apply_batch(scratch, header, _marker_bytes(segment, position, header))
                if aborted is not None and segment.base_offset >= first and not segment.transaction_index.is_kept:
                    segment.transaction_index.append(aborted)


def _marker_bytes(segment: LogSegment, position: int, header: BatchHeader) -> Callable[[], bytes]:
    return lambda: segment.read_batch(position, header)


def reload_producers(
    segments: Iterable[LogSegment], producers: ProducerStateManager, log_start: int, log_end: int, now_ms: int
) -> bool:
    """Rebuild the producers' state from the log; return whether the snapshots ended before the log."""
    producers.load_snapshot(log_start, log_end, now_ms)
    if producers.map_end_offset >= log_end:
        return False
    _replay_producers(list(segments), producers, log_end)
    return True


def _replay_producers(segments: list[LogSegment], producers: ProducerStateManager, log_end: int) -> None:
    """Apply the batches from `map_end_offset` on to the producers' state."""
    start_offset = producers.map_end_offset
    for index, segment in enumerate(segments):
        if index + 1 < len(segments) and segments[index + 1].base_offset <= start_offset:
            continue
        start = segment.locate(start_offset) if start_offset > segment.base_offset else 0
        for position, header in segment.headers(start):
            if header.base_offset >= log_end:
                break
            if header.last_offset >= start_offset and header.producer_id >= 0:
                apply_batch(producers, header, _marker_bytes(segment, position, header))
    producers.map_end_offset = log_end


def apply_batch(
    producers: ProducerStateManager, header: BatchHeader, read: Callable[[], bytes | memoryview]
) -> AbortedTransaction | None:
    """Note an appended batch in the producers' state; return the transaction that it aborts, None if it aborts none."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        producers.update(
            header.producer_id,
            header.producer_epoch,
            header.last_sequence,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            transactional=header.is_transactional,
        )
        return None
    for record in iter_records(read()):
        marker = parse_control_record(record)
        if marker.type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            continue
        assert isinstance(marker.value, EndTransactionMarker)
        entry = producers.producers.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            # The leader has checked the marker; a replay only follows.
            entry.producer_epoch = header.producer_epoch
        completed = producers.end_transaction(
            header.producer_id,
            header.producer_epoch,
            marker.value.coordinator_epoch,
            record.offset,
            record.timestamp,
            aborted=marker.type is ControlRecordType.ABORT,
        )
        if completed is not None and completed.aborted and completed.first_offset != NO_OFFSET:
            return AbortedTransaction(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                producers.last_stable_offset_after(completed),
            )
    return None
