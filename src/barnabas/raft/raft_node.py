"""One node of the quorum: inputs in, a `Ready` out.

A host calls `start` once and then `append` and `flushed`; each returns a `Ready`, whose parts the host carries out in
the order in which they are listed there:

    1. election   make the election state durable
    2. batches    append them to the log (they carry their offsets and this epoch)
    3. flush      make the log durable up to its end; take a `flush_token` before, and call `flushed` with it after
    4. high_watermark, leader_epoch, left_epoch   pass them to the listener, which applies committed records

With one voter `start` runs the whole election at once: the node raises its epoch, votes for itself, has a majority and
leads. Its LeaderChange record is the first of the epoch, and nothing is committed before it.

Sources: KIP-595 (epochs, leader change record, high watermark), KIP-853 (KRaftVersion and Voters records in the first
epoch); Kafka's `KafkaRaftClient`, `LeaderState.appendStartOfEpochControlRecords`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.protocol import messages
from barnabas.raft import quorum
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.roles import Role, may_become
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, QuorumMessage, build_control_batch

# Kafka's internal.metadata.max.batch.size.in.bytes: one atomic change has to fit one batch.
MAX_BATCH_BYTES = 8 * 1024 * 1024


class QuorumNotSupported(Exception):
    """This version cannot serve the voter set; the node must not start."""


class BatchTooLarge(Exception):
    """Records do not fit one batch, so they cannot be appended atomically."""


class Ready(NamedTuple):
    """What must happen now, in the order of the fields."""

    election: ElectionState | None = None
    batches: tuple[bytearray, ...] = ()
    flush: bool = False
    high_watermark: int | None = None
    leader_epoch: int | None = None
    left_epoch: int | None = None


class FlushToken(NamedTuple):
    """What a flush makes durable: the log up to `end_offset`, as it is after so many truncations."""

    end_offset: int
    truncations: int


class ReplicaProgress(NamedTuple):
    """What the leader knows of one replica; offset and times are -1 while unknown.

    The times are of the monotonic clock in `RaftNode.progress`, and of the wall clock in a `QuorumDescription`.
    """

    id: int
    directory_id: bytes
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1

    def shown(self, clock: Clock) -> ReplicaProgress:
        """Return the progress with times of the wall clock."""
        fetched, caught_up = (-1 if at < 0 else clock.to_wall_ms(at) for at in self[3:])
        return self._replace(last_fetch_ms=fetched, last_caught_up_ms=caught_up)


class QuorumDescription(NamedTuple):
    """What DescribeQuorum answers."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaProgress, ...]
    observers: tuple[ReplicaProgress, ...]


@dataclass
class RaftNode:
    """State of one quorum member.

    Args:
        node_id: this node.
        directory_id: the id of its metadata directory.
        history: the voter sets of the log; the last one is in force.
        election: what `quorum-state` said, or the initial state.
        end_offset, last_epoch: where the log ends.
    """

    node_id: int
    directory_id: bytes
    history: VoterSetHistory
    election: ElectionState
    end_offset: int
    last_epoch: int
    role: Role = Role.UNATTACHED
    high_watermark: int = -1
    epoch_start_offset: int = -1
    truncations: int = 0
    progress: dict[int, ReplicaProgress] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def voters(self) -> VoterSet:
        """The voter set in force."""
        return self.history.last.voters

    @property
    def kraft_version(self) -> int:
        return self.history.last.kraft_version

    @property
    def is_voter(self) -> bool:
        return self.voters.contains(self.node_id, self.directory_id)

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def leader_id(self) -> int:
        return self.election.leader_id

    def _become(self, role: Role, election: ElectionState) -> None:
        raises = election.epoch > self.election.epoch
        assert election.epoch >= self.election.epoch, f"epoch would go back from {self.epoch} to {election.epoch}"
        assert may_become(self.role, role, raises_epoch=raises, is_voter=self.is_voter), f"{self.role} to {role}"
        self.role, self.election = role, election

    def start(self, now_ms: int) -> Ready:
        """Join the quorum; a sole voter leads a new epoch when this returns.

        Raises:
            QuorumNotSupported: this node is not a voter, or not the only one.
        """
        if self.voters.ids() != (self.node_id,):
            raise QuorumNotSupported(
                f"node {self.node_id} can only be the sole voter of its quorum; the voters are "
                + ", ".join(map(str, self.voters.ids()))
            )
        if not self.is_voter:
            raise QuorumNotSupported(
                f"the voter set names another metadata directory for node {self.node_id}; was the directory replaced?"
            )
        if self.last_epoch > self.epoch:
            # quorum-state is missing or older than the log; as in Kafka, the epoch is then at least the log's.
            self.election = ElectionState(self.last_epoch)
        # A leader never continues its old epoch, so a leader that the file names is not kept.
        self.election = self.election._replace(leader_id=NO_NODE)
        return self._campaign(now_ms)

    def resign(self) -> Ready:
        """Give up leadership of this epoch; what is appended and not committed may still be committed later."""
        assert self.is_leader, "only a leader resigns"
        self._become(Role.RESIGNED, self.election)
        self.progress.clear()
        return Ready(left_epoch=self.epoch)

    def campaign(self, now_ms: int) -> Ready:
        """Stand for election again after a resignation; a sole voter leads a new epoch when this returns."""
        # The next epoch: as the leader of this one, the node must not vote in it again.
        self._become(Role.UNATTACHED, ElectionState(self.epoch + 1))
        return self._campaign(now_ms)

    def _campaign(self, now_ms: int) -> Ready:
        self._become(Role.PROSPECTIVE, self.election)
        self._become(Role.CANDIDATE, ElectionState(max(self.epoch, 0) + 1, NO_NODE, self.node_id, self.directory_id))
        outcome = quorum.election_outcome(dict.fromkeys(self.voters.ids(), True))
        assert outcome is quorum.ElectionOutcome.WON, "a sole voter wins its own election"
        return self._lead(now_ms)

    def _lead(self, now_ms: int) -> Ready:
        self._become(Role.LEADER, ElectionState(self.epoch, leader_id=self.node_id))
        self.epoch_start_offset = self.end_offset
        for voter in self.voters.voters:
            self.progress[voter.id] = ReplicaProgress(voter.id, voter.directory_id)
        batch = self._start_of_epoch(now_ms)
        return Ready(election=self.election, batches=(batch,), flush=True)

    def _start_of_epoch(self, now_ms: int) -> bytearray:
        # Version 0, without directories: Kafka writes no other, and its tools read no other.
        change = messages.LeaderChangeMessage(
            version=0,
            leader_id=self.node_id,
            voters=[messages.LeaderChangeMessage.Voter(voter_id=voter) for voter in self.voters.ids()],
            granting_voters=[messages.LeaderChangeMessage.Voter(voter_id=self.node_id)],
        )
        records: list[tuple[ControlRecordType, QuorumMessage]] = [(ControlRecordType.LEADER_CHANGE, change)]
        if self.history.is_to_write:
            records.append((ControlRecordType.KRAFT_VERSION, messages.KRaftVersionRecord(version=0, k_raft_version=1)))
            records.append((ControlRecordType.KRAFT_VOTERS, self.voters.to_record()))
            self.history.add(VotersFrom(self.end_offset + len(records) - 1, self.voters))
        batch = build_control_batch(records, timestamp=now_ms, base_offset=self.end_offset, leader_epoch=self.epoch)
        self.end_offset += len(records)
        return batch

    def append(self, values: Sequence[bytes], now_ms: int) -> Ready:
        """Build the batch that appends records atomically.

        Args:
            values: encoded metadata records, at least one.

        Raises:
            BatchTooLarge: the node is unchanged.
        """
        assert self.is_leader, "only the leader appends"
        assert values, "an empty batch has no offset to commit"
        batch = build_batch(
            [(now_ms, None, value, ()) for value in values], base_offset=self.end_offset, leader_epoch=self.epoch
        )
        if len(batch) > MAX_BATCH_BYTES:
            raise BatchTooLarge(f"{len(values)} records make a batch of {len(batch)} bytes")
        self.end_offset += len(values)
        return Ready(batches=(batch,), flush=True)

    def append_failed(self, end_offset: int) -> None:
        """Take the last `append` back: the log rejected its batch and still ends at `end_offset`."""
        assert self.progress[self.node_id].end_offset <= end_offset <= self.end_offset
        self.end_offset = end_offset

    def truncate(self, end_offset: int) -> None:
        """Note that the log was cut to `end_offset`, because the leader's log differs from there on."""
        assert not self.is_leader, "a leader never alters what its log already holds"
        assert self.high_watermark <= end_offset <= self.end_offset, f"cannot cut {self!r} to {end_offset}"
        self.end_offset = end_offset
        self.history.truncate(end_offset)
        self.truncations += 1

    def flush_token(self) -> FlushToken:
        """Return the token of a flush that begins now."""
        return FlushToken(self.end_offset, self.truncations)

    def flushed(self, token: FlushToken, monotonic_ms: int) -> Ready:
        """Note that a flush has ended; one that began before a truncation says nothing about the records written since."""
        if not self.is_leader or token.truncations != self.truncations:
            return Ready()
        end_offset = token.end_offset
        own = self.progress[self.node_id]
        assert own.end_offset <= end_offset <= self.end_offset, (
            f"flushed to {end_offset}, log ends at {self.end_offset}"
        )
        self.progress[self.node_id] = own._replace(
            end_offset=end_offset, last_fetch_ms=monotonic_ms, last_caught_up_ms=monotonic_ms
        )
        ends = [progress.end_offset for progress in self.progress.values()]
        advanced = quorum.high_watermark(ends, self.epoch_start_offset, self.high_watermark)
        if advanced == self.high_watermark:
            return Ready()
        begins_epoch = self.high_watermark <= self.epoch_start_offset
        assert advanced > self.high_watermark, "the high watermark never goes back"
        self.high_watermark = advanced
        return Ready(high_watermark=advanced, leader_epoch=self.epoch if begins_epoch else None)

    def describe(self, clock: Clock) -> QuorumDescription:
        """Return the quorum's state as the leader sees it; the leader itself is always caught up."""
        voters = tuple(
            progress._replace(last_fetch_ms=clock.wall_ms(), last_caught_up_ms=clock.wall_ms())
            if progress.id == self.node_id
            else progress.shown(clock)
            for progress in self.progress.values()
        )
        return QuorumDescription(self.leader_id, self.epoch, self.high_watermark, voters, ())

    def __repr__(self) -> str:
        return (
            f"<RaftNode id={self.node_id} {self.role.value} epoch={self.epoch} "
            f"high_watermark={self.high_watermark} end={self.end_offset}>"
        )
