"""A metadata log in memory: batches, of which a crash loses those that no flush has confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.raft.seams import Batch, SnapshotId
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header


class Stored(NamedTuple):
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


class Snapshot(NamedTuple):
    """What is committed before `id.end_offset`, and the voters then."""

    id: SnapshotId
    values: tuple[bytes, ...]
    voters: VoterSet


class MemoryLog:
    """A `LogReader`, with what its host does to it."""

    def __init__(self) -> None:
        self.batches: list[Stored] = []
        self.durable = 0
        """How many batches survive a crash."""
        self.snapshots: list[Snapshot] = []

    def __repr__(self) -> str:
        return f"<MemoryLog {self.start_offset}-{self.end_offset}>"

    @property
    def start_offset(self) -> int:
        return self.snapshots[0].id.end_offset if self.snapshots else 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return self.epoch_at(self.end_offset)

    @property
    def durable_end(self) -> int:
        return self.batches[self.durable - 1].end_offset if self.durable else self.start_offset

    def epoch_at(self, end_offset: int) -> int:
        epochs = [batch.epoch for batch in self.batches if batch.end_offset <= end_offset]
        first = self.earliest_snapshot()
        return epochs[-1] if epochs else first.epoch if first else 0

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        known = [batch for batch in self.batches if batch.epoch <= epoch]
        if known:
            return known[-1].epoch, known[-1].end_offset
        first = self.earliest_snapshot()
        return (first.epoch, first.end_offset) if first else (0, 0)

    def read(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        for batch in self.batches:
            if from_offset < batch.end_offset and batch.base_offset < to_offset:
                yield memoryview(batch.data)

    def voter_sets(self) -> Iterator[VotersFrom]:
        """The voter sets of the batches."""
        for batch in self.batches:
            if read_header(memoryview(batch.data)).is_control:
                for record in iter_records(memoryview(batch.data)):
                    control = parse_control_record(record)
                    if control.type is ControlRecordType.KRAFT_VOTERS:
                        yield VotersFrom(record.offset, VoterSet.from_record(control.value))

    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0].id if self.snapshots else None

    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1].id if self.snapshots else None

    # The host's

    def append(self, batch: Batch) -> None:
        header = read_header(memoryview(batch))
        assert header.base_offset == self.end_offset, (header.base_offset, self)
        end_offset = header.base_offset + header.last_offset_delta + 1
        self.batches.append(Stored(header.base_offset, end_offset, header.partition_leader_epoch, bytes(batch)))

    def truncate_to(self, offset: int) -> None:
        while self.batches and self.batches[-1].end_offset > offset:
            self.batches.pop()
        assert self.end_offset == offset, "a batch was cut in two"
        self.durable = min(self.durable, len(self.batches))

    def crash(self, survivors: int = 0) -> None:
        """Lose what is not durable, but for so many batches that reached the disk by chance."""
        del self.batches[self.durable + survivors :]
        self.durable = len(self.batches)

    def compact(self, snapshot: Snapshot) -> None:
        """Let the log begin at a snapshot."""
        kept = [batch for batch in self.batches if batch.base_offset >= snapshot.id.end_offset]
        self.durable = max(self.durable - (len(self.batches) - len(kept)), 0)
        self.batches = kept
        self.snapshots = [snapshot]

    def values(self, end_offset: int) -> list[bytes]:
        """What the records before an offset hold, those of the snapshot first."""
        found = list(self.snapshots[0].values) if self.snapshots else []
        for batch in self.batches:
            if batch.end_offset <= end_offset:
                found += [bytes(record.value or b"") for record in iter_records(memoryview(batch.data))]
        return found
