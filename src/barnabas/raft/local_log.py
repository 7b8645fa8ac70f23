"""Where a node's log ends, how far it is durable, and which voters it names. The host has the log itself.

- The host appends and truncates what `Ready` says before the next input, so this and the log agree whenever an input comes.
- A truncation takes back the voters that the truncated records had named (KIP-853). A flush that began before it covers nothing.
"""

from __future__ import annotations

from barnabas.raft.peer_messages import LogEnd
from barnabas.raft.ready import FlushToken
from barnabas.raft.seams import Batch, LogReader, SnapshotId
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.control import ControlRecordType, parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header

# Kafka's internal.metadata.max.fetch.size.in.bytes.
MAX_FETCH_BYTES = 8 * 1024 * 1024


class LocalLog:
    """Attributes: `durable_end` is the end of the log that a flush has confirmed; `truncations` counts them."""

    def __init__(self, reader: LogReader, history: VoterSetHistory) -> None:
        self.reader = reader
        self.history = history
        self.end_offset = reader.end_offset
        self.last_epoch = reader.last_epoch
        self.durable_end = reader.end_offset
        self.truncations = 0

    def __repr__(self) -> str:
        return f"<LocalLog end={self.end_offset} durable={self.durable_end} epoch={self.last_epoch}>"

    @property
    def end(self) -> LogEnd:
        return LogEnd(self.last_epoch, self.end_offset)

    @property
    def is_durable(self) -> bool:
        return self.durable_end == self.end_offset

    def appended(self, count: int, epoch: int) -> None:
        """Note a batch of this node's own epoch."""
        self.end_offset += count
        self.last_epoch = epoch

    def received(self, batch: Batch, leader_epoch: int) -> bool:
        """Note a leader's batch; returns False for one of an epoch that the leader itself does not know (KAFKA-18723)."""
        header = read_header(memoryview(batch))
        assert header.base_offset == self.end_offset, f"a batch at {header.base_offset}, log ends at {self.end_offset}"
        if header.partition_leader_epoch > leader_epoch:
            return False
        self.appended(header.last_offset_delta + 1, header.partition_leader_epoch)
        if header.is_control:
            self._read_voters(batch)
        return True

    def _read_voters(self, batch: Batch) -> None:
        for record in iter_records(memoryview(batch)):
            control = parse_control_record(record)
            if control.type is ControlRecordType.KRAFT_VOTERS:
                self.history.add(VotersFrom(record.offset, VoterSet.from_record(control.value)))

    def common_end(self, diverging: LogEnd) -> int:
        """Return the offset up to which this log agrees with the leader's, given the last epoch that both have and its end there."""
        own = LogEnd(*self.reader.end_offset_for_epoch(diverging.epoch))
        return min(own.end_offset, diverging.end_offset) if own.epoch == diverging.epoch else own.end_offset

    def truncate(self, end_offset: int) -> None:
        """Note that the log is cut to an offset."""
        assert end_offset <= self.end_offset, f"cannot cut {self!r} to {end_offset}"
        self.end_offset = end_offset
        self.durable_end = min(self.durable_end, end_offset)
        self.last_epoch = self.reader.epoch_at(end_offset)
        self.history.truncate(end_offset)
        self.truncations += 1

    def begin_at(self, snapshot: SnapshotId, voters: VoterSet | None) -> None:
        """Note that a snapshot has replaced the log; it names these voters, or none."""
        self.end_offset = self.durable_end = snapshot.end_offset
        self.last_epoch = snapshot.epoch
        self.truncations += 1
        self.history.begin_at(snapshot.end_offset, voters)

    def append_failed(self, end_offset: int) -> None:
        """Take back an append that the log rejected."""
        assert self.durable_end <= end_offset <= self.end_offset
        self.end_offset = end_offset

    def flush_token(self) -> FlushToken:
        return FlushToken(self.end_offset, self.truncations)

    def flushed(self, token: FlushToken) -> bool:
        """Note that a flush has ended; returns False if it says nothing about the log as it is now."""
        if token.truncations != self.truncations:
            return False
        assert self.durable_end <= token.end_offset <= self.end_offset, f"{self!r} was flushed to {token.end_offset}"
        self.durable_end = token.end_offset
        return True

    def read(self, offset: int) -> tuple[Batch, ...]:
        """Return the batches from an offset on, as many as one answer takes; at least one if there is any."""
        batches: list[Batch] = []
        size = 0
        for batch in self.reader.read(offset, self.end_offset):
            size += len(batch)
            if batches and size > MAX_FETCH_BYTES:
                break
            batches.append(batch)
        return tuple(batches)

    # A leader's questions about another replica's log

    def differs_at(self, offset: int, last_epoch: int) -> LogEnd | None:
        """Return None if a log that ends at this offset with this epoch is a part of this one; else the end of the last common epoch."""
        if not offset:
            return None
        end = LogEnd(*self.reader.end_offset_for_epoch(last_epoch))
        return end if end.epoch != last_epoch or end.end_offset < offset else None

    def snapshot_for(self, offset: int, last_epoch: int) -> SnapshotId | None:
        """Return the snapshot that a replica must take first, because this log does not go back to where its own ends."""
        first = self.reader.earliest_snapshot()
        if first is None or (offset, last_epoch) == first or (offset > first.end_offset and last_epoch >= first.epoch):
            return None
        return self.reader.latest_snapshot()
