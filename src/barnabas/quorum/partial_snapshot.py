"""A snapshot of the metadata that is being received: a file with another ending until it is whole.

    00000000000000004711-0000000003.checkpoint.part   while pieces come
    00000000000000004711-0000000003.checkpoint        once `MetadataLog.begin_at` has taken it

Crash argument: the file gets its final name only after its bytes are durable and have been checked, and the directory is synced after
that. A cut before leaves a `.part`, which the next start removes; a snapshot is then received from its beginning.

Source: Kafka's `Snapshots` and `FileRawSnapshotWriter`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from barnabas.log.disk import Disk, parent_dir, write_fully
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft.seams import Batch, SnapshotId
from barnabas.records.record_batch import check_batch, iter_batches

PART = ".part"


class PartialSnapshot:
    """`raft.seams.IncomingSnapshot` in a file.

    Args:
        path: the final one.
        durable: whether the bytes are synced before the file gets its name.
        run_blocking: runs the sync in the executor and returns its future; None syncs inline.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        snapshot: SnapshotId,
        *,
        durable: bool,
        run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None,
    ) -> None:
        self.snapshot = snapshot
        self.size = 0
        self._disk = disk
        self._path = path
        self._durable = durable
        self._submit = run_blocking
        self._is_there = True
        self._file = disk.open(path + PART, create=True)
        self._file.truncate(0)

    def __repr__(self) -> str:
        return f"<PartialSnapshot {self._path} size={self.size}>"

    def append(self, data: Batch) -> None:
        write_fully(self._file, data, self.size)
        self.size += len(data)

    async def complete(self) -> None:
        """Make the whole of it durable.

        Raises:
            KafkaError: it is damaged.
        """
        if self._submit is None:
            self._check_and_sync()
        else:
            await self._submit(self._check_and_sync)

    def _check_and_sync(self) -> None:
        data = memoryview(self._disk.read_file(self._path + PART))
        end = 0
        for position, header in iter_batches(data):
            check_batch(data[position : position + header.size])
            end = position + header.size
        if end != len(data) or not end:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the snapshot that was received is cut off")
        if self._durable:
            self._disk.sync_file(self._path + PART)

    def rename(self) -> None:
        """Give the file its final name."""
        self._file.close()
        self._disk.rename(self._path + PART, self._path)
        self._is_there = False
        if self._durable:
            self._disk.sync_dir(parent_dir(self._path))

    def discard(self) -> None:
        """Delete what is here; nothing happens after `rename`. If the disk fails, the next start deletes it."""
        if self._is_there:
            self._is_there = False
            with contextlib.suppress(OSError):
                self._file.close()
                self._disk.remove(self._path + PART)
