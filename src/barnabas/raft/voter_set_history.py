"""The voter sets of a log, each from the offset of its record on.

A voter set is in force as soon as its record is in the log, committed or not (KIP-853). So the set in force, which is the last
one, can be later than the one that a snapshot of the committed records has to name, and a truncation can take it back.

An entry at offset -1 is from the formatting of the directory, or from its configuration; the log does not hold it yet.

Source: Kafka's `VoterSetHistory`, `KRaftControlRecordStateMachine`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voters import VoterSet

NOT_IN_LOG = -1


class VotersFrom(NamedTuple):
    """The voters from an offset on; `kraft_version` is 0 if only the configuration names them."""

    offset: int
    voters: VoterSet
    kraft_version: int = 1


class VoterSetHistory:
    """Voter sets in the order of their offsets; at least one."""

    def __init__(self, first: VotersFrom) -> None:
        self._entries = [first]

    def __repr__(self) -> str:
        return f"<VoterSetHistory offsets={[entry.offset for entry in self._entries]}>"

    @property
    def last(self) -> VotersFrom:
        """The voters in force."""
        return self._entries[-1]

    @property
    def is_to_write(self) -> bool:
        """Whether the first epoch must write the voters into the log, because so far only the formatted directory holds them."""
        return self.last.offset == NOT_IN_LOG and self.last.kraft_version > 0

    def add(self, entry: VotersFrom) -> None:
        assert entry.offset > self.last.offset, f"{self!r} goes back to {entry.offset}"
        self._entries.append(entry)

    def begin_at(self, snapshot_end: int, voters: VoterSet | None) -> None:
        """Forget all but the voters of a snapshot that replaces the log; None if the snapshot names none."""
        first = self._entries[0]
        self._entries = [first] if voters is None else [VotersFrom(snapshot_end - 1, voters)]

    def at(self, offset: int) -> VotersFrom:
        """Return the voters as of an offset: those of the last record at or before it, else the first ones."""
        return next((entry for entry in reversed(self._entries) if entry.offset <= offset), self._entries[0])

    def may_stand(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Return whether a node may stand for election: it is a voter, or the set that removed it is not committed yet.

        If only the node that removed itself has the record of its removal, its log is the longest, and the others cannot elect anybody
        without it (Raft dissertation, section 4.2.2).
        """
        if self.last.voters.contains(*key):
            return True
        is_open = self.last.offset >= high_watermark and len(self._entries) > 1
        return is_open and self._entries[-2].voters.contains(*key)

    def has_removed(self, key: ReplicaKey, high_watermark: int) -> bool:
        """Return whether the last voter set is committed, and a node is not in it."""
        return self.last.offset < high_watermark and not self.last.voters.contains(*key)

    def truncate(self, end_offset: int) -> None:
        """Forget the records from `end_offset` on, but never the first entry."""
        self._entries = self._entries[:1] + [entry for entry in self._entries[1:] if entry.offset < end_offset]
