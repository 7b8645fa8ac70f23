"""The interfaces that a quorum needs: a log, a store for the election state, a listener.

The server implements these over a partition log and files, tests over lists, the simulator over its own disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from barnabas.raft.election_state import ElectionState
from barnabas.raft.voters import VoterSet

Batch = bytearray | bytes | memoryview
"""One record batch: built here, received, or read."""


class SnapshotId(NamedTuple):
    """A snapshot holds everything before `end_offset`; `epoch` is that of its last record."""

    end_offset: int
    epoch: int


class LogReader(Protocol):
    """The metadata log of this node, to be read. Offsets are dense; a batch is the unit of everything."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last batch, or of the latest snapshot when the log is empty; 0 when neither is there."""

    def read(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        """Whole batches up to (not including) `to_offset`; the first of them holds `from_offset`."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below `epoch` that the log knows, and the offset after its last record."""

    def epoch_at(self, end_offset: int) -> int:
        """Return the leader epoch of the last batch before an offset, or of the snapshot that ends there."""

    def earliest_snapshot(self) -> SnapshotId | None:
        """The snapshot that ends where the log starts, if the log does not start at 0."""

    def latest_snapshot(self) -> SnapshotId | None: ...


class IncomingSnapshot(Protocol):
    """A snapshot that is being received."""

    @property
    def size(self) -> int:
        """How many bytes are here."""

    def append(self, data: Batch) -> None: ...

    async def complete(self) -> None:
        """Make the whole of it durable.

        Raises:
            KafkaError: it is damaged.
        """

    def discard(self) -> None:
        """Delete what is here; does nothing after `ReplicatedLog.begin_at`. It never fails, so that a cancelled transfer ends."""


class ReplicatedLog(LogReader, Protocol):
    """The metadata log of this node."""

    def append(self, batch: Batch, leader_epoch: int) -> None:
        """Append one batch whose base offset is `end_offset`."""

    def flush(self, done: Callable[[], None]) -> None:
        """Make everything appended so far durable and call `done`, before it returns or later, never twice."""

    def truncate_to(self, offset: int) -> None: ...

    def set_high_watermark(self, offset: int) -> None: ...

    def read_snapshot(self, snapshot: SnapshotId) -> bytes: ...

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        """Return the size of a snapshot in bytes; None if it is not there any more."""

    def read_snapshot_piece(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes: ...

    def receive_snapshot(self, snapshot: SnapshotId) -> IncomingSnapshot:
        """Begin to take a snapshot from another node; an unfinished one is never seen."""

    def begin_at(self, incoming: IncomingSnapshot) -> VoterSet | None:
        """Let the log begin and end at a complete snapshot, and drop everything else.

        Returns:
            The voters that the snapshot names; None if it names none.
        """

    async def write_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        """Make a snapshot durable, then visible; an unfinished one is never seen."""

    def trim(self) -> None:
        """Drop old snapshots, and segments that a snapshot covers, as far as retention allows."""


class ElectionStateStore(Protocol):
    def read(self) -> ElectionState | None:
        """None before the first election."""

    def write(self, state: ElectionState) -> None:
        """Durable when it returns."""


class QuorumListener(Protocol):
    """Receives the quorum's progress: the controller, or a broker that only follows."""

    def on_high_watermark(self, offset: int) -> None:
        """Everything before `offset` is committed."""

    def on_leader(self, epoch: int) -> None:
        """This node leads `epoch` and has committed the epoch's first record."""

    def on_resigned(self, epoch: int) -> None:
        """This node no longer leads `epoch`, whose first record may not have been committed."""
