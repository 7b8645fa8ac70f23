"""The quorum's log on disk: `__cluster_metadata-0`, a partition log like any other.

    __cluster_metadata-0/
        00000000000000000000.log, .index, .timeindex     the records
        00000000000000000000-0000000000.checkpoint       the voters, from the formatting
        00000000000000004711-0000000003.checkpoint       snapshots: end offset and epoch
        quorum-state                                      epoch, leader, vote
        leader-epoch-checkpoint, partition.metadata

Crash argument
- A record is committed after the flush of its batch. A crash therefore leaves at most one torn batch, which was never
  acknowledged; opening the log truncates it.
- Snapshots and `quorum-state` are written under another name, flushed and renamed: a file with its final name is whole. A leftover
  `.tmp` is ignored, and the next writer of the same name replaces it. What a snapshot from the leader leaves (`partial_snapshot`) is
  removed at the next start.
- The log's start moves to a snapshot only after the snapshot is durable. A snapshot is deleted only after the start has moved past
  the records that it alone covered.
- If a snapshot ends beyond the log, or where the log has no record or one of an earlier epoch, the log lacks records that the snapshot
  holds: it was cut off, or a snapshot of the leader was replacing it. The log restarts at the snapshot's end, and older snapshots go.

With `barnabas.metadata.flush=false` nothing is flushed, which is right only for a broker inside a test.

Sources: Kafka's `KafkaRaftLog`, `FileQuorumStateStore`, `Snapshots`; KIP-595, KIP-630.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator

from barnabas.config.config import BrokerConfig
from barnabas.log import partition_metadata
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_config import LogConfig
from barnabas.log.log_files import PARTITION_METADATA
from barnabas.log.log_flusher import run_in_future
from barnabas.log.partition_log import AppendOrigin, PartitionLog, run_inline
from barnabas.protocol.primitives import ONE_UUID
from barnabas.quorum.partial_snapshot import PART, PartialSnapshot
from barnabas.raft.election_state import ElectionState
from barnabas.raft.seams import Batch, IncomingSnapshot, SnapshotId
from barnabas.raft.voter_set_history import NOT_IN_LOG, VoterSetHistory, VotersFrom
from barnabas.raft.voters import VoterEndpoint, VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import BATCH_OVERHEAD, iter_batches, read_header

logger = logging.getLogger(__name__)

DIRECTORY = "__cluster_metadata-0"
QUORUM_STATE = "quorum-state"
READ_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
_CHECKPOINT = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")


def checkpoint_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


class MetadataLog:
    """`raft.seams.ReplicatedLog` over a `PartitionLog` and checkpoint files.

    Args:
        root: the data directory that holds `__cluster_metadata-0`.
        durable: whether flushes reach the device.
        run_blocking: runs a flush in the executor and returns its future; None flushes inline.
        on_fault: called when a flush fails; nothing is committed afterwards.
    """

    def __init__(
        self,
        disk: Disk,
        root: str,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        durable: bool = True,
        retention_bytes: int = -1,
        retention_ms: int = -1,
        run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None = None,
        on_fault: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.directory = f"{root}/{DIRECTORY}"
        self._disk = disk
        self._now_ms = now_ms
        self._durable = durable
        self._retention_bytes = retention_bytes
        self._retention_ms = retention_ms
        self._on_fault = on_fault
        self._submit = run_blocking
        self._run = run_inline if run_blocking is None else run_in_future(run_blocking)
        self._flush_done: Callable[[], None] | None = None
        if not disk.is_dir(self.directory):
            disk.mkdir(self.directory)
            if durable:
                # Its name must be as durable as what is promised with its files.
                disk.sync_dir(root)
        self._remove_partial_snapshots()
        self._snapshots = self._list_snapshots()
        oldest = self._snapshots[0].end_offset if self._snapshots else 0
        self._log = PartitionLog(
            disk, self.directory, config, now_ms=now_ms, run_blocking=self._run_blocking, log_start_offset=oldest
        )
        latest = self.latest_snapshot()
        # A later epoch's snapshot was replacing the log; of another one the records after it would mean nothing.
        end_offset, epoch = latest or SnapshotId(0, 0)
        if self.start_offset > end_offset and self._log.latest_epoch >= epoch:
            raise KafkaStorageError(
                f"the metadata log begins at {self.start_offset}, and no snapshot has what was before (restore the .checkpoint files)"
            )
        if latest is not None:
            self._agree_with(latest)
        if not disk.exists(f"{self.directory}/{PARTITION_METADATA}"):
            identity = partition_metadata.encode(ONE_UUID)
            disk.write_file_atomic(f"{self.directory}/{PARTITION_METADATA}", identity, sync=False)

    def _agree_with(self, latest: SnapshotId) -> None:
        """Let the log begin at a snapshot, hold what the latest one holds, and count that as committed."""
        log = self._log
        if not self._holds_what_ends(latest):
            logger.warning("The metadata log up to %d lacks what its snapshot at %d holds", self.end_offset, latest[0])
            log.truncate_fully_and_start_at(latest.end_offset)
        log.high_watermark = max(log.high_watermark, latest.end_offset)
        self._remove_snapshots_before(self.start_offset)
        if self.start_offset < self._snapshots[0].end_offset:
            # The process ended while it trimmed the log.
            log.delete_records_before(self._snapshots[0].end_offset)

    def _holds_what_ends(self, snapshot: SnapshotId) -> bool:
        """Return whether the log reaches a snapshot's end with an epoch there that is not older."""
        end_offset = snapshot.end_offset
        if self.start_offset == end_offset or end_offset > self.end_offset:
            return end_offset <= self.end_offset
        last = read_header(next(self.read(end_offset - 1, self.end_offset)))
        # Where segments are missing, the next batch lies behind.
        return last.base_offset < end_offset and last.partition_leader_epoch >= snapshot.epoch

    def _run_blocking(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run a flush in the executor and call back when it completes."""
        waiting, self._flush_done = self._flush_done, None

        def finished(error: BaseException | None) -> None:
            done(error)
            if error is not None and self._on_fault is not None and waiting is not None:
                self._on_fault(KafkaStorageError(f"the metadata log cannot be flushed: {in_words(error)}"))
            elif error is None and waiting is not None:
                waiting()

        self._run(work, finished)

    # The log

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        latest = self.latest_snapshot()
        return max(self._log.latest_epoch, 0 if latest is None else latest.epoch)

    def append(self, batch: Batch, leader_epoch: int) -> None:
        self._log.append_as_leader(memoryview(batch), leader_epoch, origin=AppendOrigin.RAFT)

    def flush(self, done: Callable[[], None]) -> None:
        if not self._durable or self._log.recovery_point >= self._log.log_end_offset:
            done()
            return
        self._flush_done = done
        self._log.flush_elsewhere()

    def read(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        offset = max(from_offset, self.start_offset)
        # A snapshot from the leader may replace the log while it is read.
        while self.start_offset <= offset < to_offset:
            data = memoryview(self._log.read(offset, READ_BYTES, max_offset=to_offset).read())
            if not data:
                return
            for position, header in iter_batches(data):
                offset = header.next_offset
                yield data[position : position + header.size]

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        found, end_offset = self._log.end_offset_for_epoch(epoch)
        first = self.earliest_snapshot()
        if found < 0:
            return self.last_epoch, self.end_offset
        if first is not None and (found, end_offset) == (epoch, first.end_offset):
            # The epoch is older than the log: the snapshot knows the last one before it.
            return first.epoch, first.end_offset
        return found, end_offset

    def epoch_at(self, end_offset: int) -> int:
        first = self.earliest_snapshot()
        return max(self._log.epoch_for_offset(end_offset - 1), 0 if first is None else first.epoch)

    def truncate_to(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def set_high_watermark(self, offset: int) -> None:
        self._log.high_watermark = offset

    def _path(self, snapshot: SnapshotId) -> str:
        return f"{self.directory}/{checkpoint_name(snapshot)}"

    # Snapshots

    def _list_snapshots(self) -> list[SnapshotId]:
        """Return every snapshot, oldest first."""
        found = (_CHECKPOINT.match(name) for name in self._disk.listdir(self.directory))
        return sorted(SnapshotId(int(match[1]), int(match[2])) for match in found if match is not None)

    def earliest_snapshot(self) -> SnapshotId | None:
        return next((each for each in self._snapshots if each.end_offset == self.start_offset), None)

    def latest_snapshot(self) -> SnapshotId | None:
        return self._snapshots[-1] if self._snapshots else None

    def read_snapshot(self, snapshot: SnapshotId) -> bytes:
        return self._disk.read_file(self._path(snapshot))

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        return self._disk.file_size(self._path(snapshot)) if snapshot in self._snapshots else None

    def read_snapshot_piece(self, snapshot: SnapshotId, position: int, max_bytes: int) -> bytes:
        file = self._disk.open(self._path(snapshot))
        try:
            return file.pread(max_bytes, position)
        finally:
            file.close()

    def receive_snapshot(self, snapshot: SnapshotId) -> PartialSnapshot:
        return PartialSnapshot(
            self._disk, self._path(snapshot), snapshot, durable=self._durable, run_blocking=self._submit
        )

    def begin_at(self, incoming: IncomingSnapshot) -> VoterSet | None:
        assert isinstance(incoming, PartialSnapshot), incoming
        snapshot = incoming.snapshot
        incoming.rename()
        self._log.truncate_fully_and_start_at(snapshot.end_offset)
        self._snapshots = sorted({*self._snapshots, snapshot})
        self._remove_snapshots_before(snapshot.end_offset)
        # Not the whole file, which may have many megabytes: this is one turn of the loop.
        named = [voters for _, voters in _voter_records([self._head_of(snapshot)])]
        return named[-1] if named else None

    def _head_of(self, snapshot: SnapshotId) -> memoryview:
        """Return the first batches of a snapshot, up to one of records: the voters are before those (KIP-853)."""
        size = HEAD_BYTES
        while True:
            head = memoryview(self.read_snapshot_piece(snapshot, 0, size))
            end = 0
            for position, header in iter_batches(head):
                if not header.is_control:
                    return head[:position]
                end = position + header.size
            # The batch that goes on behind the piece is often one of records.
            is_next_known = len(head) - end >= BATCH_OVERHEAD
            if len(head) < size or (is_next_known and not read_header(head, end).is_control):
                return head[:end]
            size *= 2

    def _remove_partial_snapshots(self) -> None:
        for name in self._disk.listdir(self.directory):
            if name.endswith(PART):
                self._disk.remove(f"{self.directory}/{name}")

    def _remove_snapshots_before(self, start_offset: int) -> None:
        """Remove snapshots that end before the log begins: the records after them are gone."""
        while self._snapshots and self._snapshots[0].end_offset < start_offset:
            self._disk.remove(self._path(self._snapshots.pop(0)))

    async def write_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        def write() -> None:
            self._disk.write_file_atomic(self._path(snapshot), data, sync=self._durable)

        if self._submit is None:
            write()
        else:
            await self._submit(write)
        if snapshot not in self._snapshots:
            self._snapshots = sorted([*self._snapshots, snapshot])

    def trim(self) -> None:
        """Delete the oldest snapshots, and the log up to the next one, while they exceed the retention."""
        while len(self._snapshots) > 1 and self._is_beyond_retention(self._snapshots[0]):
            oldest, following = self._snapshots[0], self._snapshots[1]
            start = min(following.end_offset, self._log.high_watermark)
            self._log.delete_records_before(start)
            self._log.apply_retention()
            self._log.remove_deleted_files(at_once=True)
            self._disk.remove(self._path(oldest))
            self._snapshots = self._snapshots[1:]

    def _is_beyond_retention(self, snapshot: SnapshotId) -> bool:
        if self._retention_bytes >= 0:
            size = sum(self._disk.file_size(self._path(other)) for other in self._snapshots)
            if size + self._log.size_in_bytes > self._retention_bytes:
                return True
        if self._retention_ms >= 0:
            return self._now_ms() - self._disk.modified_ms(self._path(snapshot)) > self._retention_ms
        return False

    # Voters

    def voters(self, static: VoterSet) -> VoterSetHistory:
        """Return the voter sets of the latest snapshot and of the log; `static` is in force where neither has one."""
        history = VoterSetHistory(VotersFrom(NOT_IN_LOG, static, kraft_version=0))
        latest = self.latest_snapshot()
        if latest is not None:
            # As of the snapshot's last record: -1 for the checkpoint of a formatted directory.
            for _, voters in _voter_records([memoryview(self.read_snapshot(latest))]):
                history = VoterSetHistory(VotersFrom(latest.end_offset - 1, voters))
        for offset, voters in _voter_records(self.read(self.start_offset, self.end_offset)):
            if offset > history.last.offset:
                history.add(VotersFrom(offset, voters))
        return history

    def close(self, *, clean: bool = True) -> None:
        self._log.close(clean=clean)

    def __repr__(self) -> str:
        return f"<MetadataLog {self.start_offset}..{self.end_offset} snapshots={len(self._snapshots)}>"


def _voter_records(chunks: Iterator[memoryview] | list[memoryview]) -> Iterator[tuple[int, VoterSet]]:
    """Yield each voter set and the offset of its record."""
    for chunk in chunks:
        for position, header in iter_batches(chunk):
            if not header.is_control:
                continue
            for record in iter_records(chunk[position : position + header.size]):
                control = parse_control_record(record)
                if control.type is ControlRecordType.KRAFT_VOTERS:
                    yield record.offset, VoterSet.from_record(control.value)


class QuorumStateFile:
    """`raft.seams.ElectionStateStore` over the file `quorum-state`."""

    def __init__(self, disk: Disk, directory: str, *, durable: bool = True) -> None:
        self._disk = disk
        self._path = f"{directory}/{QUORUM_STATE}"
        self._durable = durable

    def read(self) -> ElectionState | None:
        try:
            return ElectionState.from_bytes(self._disk.read_file(self._path))
        except FileNotFoundError:
            return None

    def write(self, state: ElectionState) -> None:
        self._disk.write_file_atomic(self._path, state.to_bytes(), sync=self._durable)


def controller_listener_name(config: BrokerConfig) -> str:
    """Return the name of the listener by which the nodes of the quorum reach each other."""
    names = config.list_value("controller.listener.names")
    return names[0].upper() if names else "CONTROLLER"


def controller_endpoints(config: BrokerConfig) -> tuple[VoterEndpoint, ...]:
    """Return this voter's addresses: its controller listeners as it advertises them, or else its first listener."""
    advertised = {each.name: each for each in config.advertised_controller_listeners}
    found = tuple(advertised.get(each.name, each) for each in config.controller_listeners)
    if not found:
        name = controller_listener_name(config)
        return tuple(VoterEndpoint(name, each.host or "localhost", each.port) for each in config.listeners[:1])
    return tuple(VoterEndpoint(each.name, each.host or "localhost", each.port) for each in found)
