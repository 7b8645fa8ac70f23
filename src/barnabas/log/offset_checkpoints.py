"""The checkpoints of a directory: recovery points, log starts and high watermarks of all its logs.

A write takes the offsets of open logs from the logs, and keeps those of unopened logs as they are. An unchanged file is
not written. The loop has its turns while the offsets of many logs are collected. If a log is truncated or forgotten meanwhile, nothing is
written: an offset that was collected before must not come back.

Durability: see `checkpoints` for the cost of each lost file. Log starts, which DeleteRecords has promised, are always synced, and the
log is flushed up to its start first: after a power cut a start beyond the log's end would look like rot.

Source: Kafka's `LogManager.checkpointRecoveryOffsetsInDir`, `checkpointLogStartOffsetsInDir`.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping
from typing import NamedTuple

from barnabas.log import checkpoints
from barnabas.log.disk import Disk
from barnabas.log.partition_log import PartitionLog
from barnabas.turns import ELEMENT, RECORD, pace

logger = logging.getLogger(__name__)

Key = tuple[str, int]


class KnownOffsets(NamedTuple):
    """One log's offsets in the checkpoints; 0 if unknown."""

    recovery_point: int
    log_start: int
    high_watermark: int


class OffsetCheckpoints:
    """The checkpoints of one directory. `load` them before use."""

    def __init__(self, disk: Disk, root_dir: str) -> None:
        self._disk = disk
        self._root_dir = root_dir
        self._recovery_points: dict[Key, int] = {}
        self._log_starts: dict[Key, int] = {}
        self._high_watermarks: dict[Key, int] = {}
        self._written: dict[str, tuple[bytes, bool]] = {}
        # Offsets collected in an earlier generation must not be written.
        self._generation = 0

    def __repr__(self) -> str:
        return f"<OffsetCheckpoints {self._root_dir} of {len(self._recovery_points)} logs>"

    def load(self) -> None:
        """Read the files; an incomplete file counts as empty."""
        self._recovery_points = self._read(checkpoints.RECOVERY_POINT_CHECKPOINT)
        self._log_starts = self._read(checkpoints.LOG_START_OFFSET_CHECKPOINT)
        self._high_watermarks = self._read(checkpoints.REPLICATION_OFFSET_CHECKPOINT)

    def _read(self, name: str) -> dict[Key, int]:
        offsets = checkpoints.read_offsets(self._disk, f"{self._root_dir}/{name}")
        if offsets is None:
            logger.warning("%s/%s is not complete and is ignored", self._root_dir, name)
            return {}
        return offsets

    def of(self, key: Key) -> KnownOffsets:
        """Return the offsets of a log."""
        return KnownOffsets(
            self._recovery_points.get(key, 0), self._log_starts.get(key, 0), self._high_watermarks.get(key, 0)
        )

    def with_records(self) -> set[Key]:
        """Return the logs that have committed records, as the files say."""
        return {key for key, offset in self._high_watermarks.items() if offset > 0}

    def give_up(self) -> None:
        """End the write that waits for its turn: it writes nothing."""
        self._generation += 1

    def lower_recovery_point(self, key: Key, offset: int) -> None:
        """Before a truncation: recovery must not take what is written behind it for flushed, even after a power cut.

        Raises:
            OSError: the disk failed; the old checkpoint stands.
        """
        self._generation += 1
        if self._recovery_points.get(key, 0) > offset:
            recovery_points = {**self._recovery_points, key: offset}
            data = checkpoints.encode_offsets(recovery_points)
            self._write(checkpoints.RECOVERY_POINT_CHECKPOINT, data, sync=True)
            self._recovery_points = recovery_points

    def forget(self, key: Key) -> None:
        """Take a log out of the files, durably: a new log of its name must not get its offsets after a crash.

        Raises:
            OSError: the disk failed; the files may still name the log, and this object does.
        """
        self._generation += 1
        for name, offsets in (
            (checkpoints.RECOVERY_POINT_CHECKPOINT, self._recovery_points),
            (checkpoints.LOG_START_OFFSET_CHECKPOINT, self._log_starts),
            (checkpoints.REPLICATION_OFFSET_CHECKPOINT, self._high_watermarks),
        ):
            if key in offsets:
                rest = {other: offset for other, offset in offsets.items() if other != key}
                self._write(name, checkpoints.encode_offsets(rest), sync=True)
                del offsets[key]

    async def write(self, logs: Mapping[Key, PartitionLog], unopened: Container[Key], *, sync: bool = False) -> bool:
        """Write the offsets of open logs, and the known offsets of unopened logs again.

        Args:
            sync: make all of them durable; log starts always are.

        Returns: False if nothing was written because another write began, or a log was deleted, meanwhile.

        Raises:
            KafkaStorageError, OSError: the disk failed; the old checkpoints stand.
        """
        generation = self._generation = self._generation + 1
        recovery_points = {k: v for k, v in self._recovery_points.items() if k in unopened}
        log_starts = {k: v for k, v in self._log_starts.items() if k in unopened}
        high_watermarks = {k: v for k, v in self._high_watermarks.items() if k in unopened}
        for key, log in list(logs.items()):
            await pace(ELEMENT)
            if logs.get(key) is not log:
                continue  # It has been deleted meanwhile, and its files may be gone.
            if log.log_start_is_inside_a_segment:
                if log.log_start_offset > log.recovery_point:
                    log.flush()
                log_starts[key] = log.log_start_offset
            recovery_points[key] = log.recovery_point
            high_watermarks[key] = log.high_watermark
        files = []
        for name, offsets in (
            (checkpoints.RECOVERY_POINT_CHECKPOINT, recovery_points),
            (checkpoints.LOG_START_OFFSET_CHECKPOINT, log_starts),
            (checkpoints.REPLICATION_OFFSET_CHECKPOINT, high_watermarks),
        ):
            files.append((name, await _encode(offsets)))
        if self._generation != generation:
            return False
        for name, data in files:
            self._write(name, data, sync=sync or name == checkpoints.LOG_START_OFFSET_CHECKPOINT)
        self._recovery_points, self._log_starts, self._high_watermarks = recovery_points, log_starts, high_watermarks
        return True

    async def write_high_watermarks(self, logs: Mapping[Key, PartitionLog], unopened: Container[Key]) -> bool:
        """As `write`, but only the high watermarks, which followers and new leaders begin with; never synced.

        Raises:
            OSError: the disk failed; the old checkpoint stands.
        """
        generation = self._generation = self._generation + 1
        high_watermarks = {k: v for k, v in self._high_watermarks.items() if k in unopened}
        for key, log in list(logs.items()):
            await pace(RECORD)
            high_watermarks[key] = log.high_watermark
        data = await _encode(high_watermarks)
        if self._generation != generation:
            return False
        self._write(checkpoints.REPLICATION_OFFSET_CHECKPOINT, data, sync=False)
        self._high_watermarks = high_watermarks
        return True

    def _write(self, name: str, data: bytes, *, sync: bool) -> None:
        if self._written.get(name) == (data, sync):
            return
        try:
            self._disk.write_file_atomic(f"{self._root_dir}/{name}", data, sync=sync)
        except BaseException:
            # Whether the disk takes writes again, only a write shows.
            self._written.clear()
            raise
        self._written[name] = data, sync


async def _encode(offsets: Mapping[Key, int]) -> bytes:
    """Encode a checkpoint."""
    lines: list[str] = []
    for (topic, partition), offset in offsets.items():
        await pace(ELEMENT)
        lines.append(checkpoints.offset_line(topic, partition, offset))
    return checkpoints.encode_lines(lines)
