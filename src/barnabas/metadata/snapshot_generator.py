"""Writes snapshots of the metadata when they are due, with turns of the loop between its batches.

It is a publisher: a snapshot may be due with each image that arrives. The image never changes, so its records are encoded a thousand in
each turn of the loop while later images arrive; the file is written in the executor. One snapshot is written at a time.

A snapshot that fails costs only space, because the log still holds everything.

Source: Kafka's `SnapshotGenerator`, `SnapshotEmitter`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.log.errors import in_words
from barnabas.metadata.snapshots import SnapshotPolicy, snapshot_batches
from barnabas.raft.seams import SnapshotId
from barnabas.steps import run_on_the_spot
from barnabas.turns import next_turn

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.raft.seams import ReplicatedLog
    from barnabas.raft.voter_set_history import VoterSetHistory
    from barnabas.steps import Loop

logger = logging.getLogger(__name__)


class SnapshotGenerator:
    """Writes snapshots of one node's image.

    Args:
        history: the voter sets; a snapshot names those as of its last record.
        loaded_bytes: returns how many bytes of the log the loader has published.
        loop: has its turns meanwhile; without one a snapshot is written in one go.
    """

    def __init__(
        self,
        log: ReplicatedLog,
        history: VoterSetHistory,
        policy: SnapshotPolicy,
        clock: Clock,
        loaded_bytes: Callable[[], int],
        loop: Loop | None = None,
    ) -> None:
        self._log = log
        self._history = history
        self._policy = policy
        self._clock = clock
        self._loaded_bytes = loaded_bytes
        self._counted_bytes = 0
        self._loop = loop
        self._is_writing = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<SnapshotGenerator since={self._policy.bytes_since} writing={self._is_writing}>"

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Count what the image adds to the log, and write a snapshot of it if one is due."""
        loaded_bytes = self._loaded_bytes()
        self._policy.appended(loaded_bytes - self._counted_bytes)
        self._counted_bytes = loaded_bytes
        if not self._is_writing and not self._closed and self._policy.is_due(self._clock.monotonic_ms()):
            run_on_the_spot(self._write(image), self._loop)

    def close(self) -> None:
        """Give up a snapshot under way; begin none."""
        self._closed = True

    async def _write(self, image: MetadataImage) -> None:
        self._is_writing = True
        self._policy.written(self._clock.monotonic_ms())
        try:
            if self._loop is not None:
                # The answer to the request that made the snapshot due is sent first.
                await next_turn()
            await self.write(image)
        except Exception as error:
            logger.warning(
                "Cannot write a snapshot of the metadata, the log goes on without: %s",
                in_words(error),
                exc_info=None if isinstance(error, OSError) else error,
            )
        finally:
            self._is_writing = False

    async def write(self, image: MetadataImage) -> SnapshotId:
        """Write a snapshot of a committed image, and let the log drop what it covers."""
        provenance = image.provenance
        snapshot = SnapshotId(provenance.offset + 1, provenance.epoch)
        # Not the voters in force: their record may not be committed yet.
        voters = self._history.at(provenance.offset)
        batches: list[bytes] = []
        for batch in snapshot_batches(image, voters):
            batches.append(batch)
            if self._loop is not None:
                await next_turn()
            if self._closed:
                return snapshot
        await self._log.write_snapshot(snapshot, b"".join(batches))
        if not self._closed:
            self._log.trim()
        return snapshot
