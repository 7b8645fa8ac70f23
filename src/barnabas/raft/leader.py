"""The leader of an epoch: the state of each replica, which voters know the leader, and whether a majority still fetches from it.

- A record is committed once a majority of the voters has it on disk, and only if it is of this epoch or before one that is.
- The voters are those of the log's last voter set, committed or not (KIP-853). The leader itself may not be one of them.
- A leader that no majority has fetched from for 1.5 fetch timeouts resigns: another may lead already (KIP-835's check quorum).

Source: Kafka's `LeaderState`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft import quorum
from barnabas.raft.election_state import ElectionState
from barnabas.raft.peer_messages import LogEnd
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.voters import Voter, VoterSet

# How long a leader remembers an observer that does not fetch, as in Kafka.
OBSERVER_SESSION_MS = 300_000

# How long ago a new voter may have fetched last, as in Kafka's `isReplicaCaughtUp`.
CAUGHT_UP_MS = 3_600_000


class ReplicaProgress(NamedTuple):
    """The progress of one replica as the leader sees it; offset and times are -1 while unknown.

    The times are of the monotonic clock in `Leader`, and of the wall clock in a `QuorumDescription`.
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
    """The answer to DescribeQuorum."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaProgress, ...]
    observers: tuple[ReplicaProgress, ...]


@dataclass(slots=True)
class Leader:
    """State of one epoch's leader.

    Args:
        key: this node.
        voters: the voters in force.
        check_ms: how long a majority may be silent.
        deadline_ms: when the silence of a majority ends this leader; of no meaning for a sole voter.

    Attributes:
        heard_at: when each voter showed that it knows of this leader.
        begin_at_ms: when the leader informs those again that may not know of it.
        named: the voters with the addresses and versions that they sent in this epoch; in a static quorum only the leader knows this.
    """

    epoch: int
    epoch_start_offset: int
    key: ReplicaKey
    voters: VoterSet
    check_ms: int
    deadline_ms: int
    begin_at_ms: int
    high_watermark: int = -1
    progress: dict[int, ReplicaProgress] = field(default_factory=dict)
    observers: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    heard_at: dict[int, int] = field(default_factory=dict)
    heard: set[int] = field(default_factory=set)
    named: VoterSet = field(init=False)
    role: Role = Role.LEADER
    voted: ReplicaKey | None = None

    def __post_init__(self) -> None:
        self.named = self.voters
        self.progress = {each.id: ReplicaProgress(each.id, each.directory_id) for each in self.voters.voters}

    def change_voters(self, voters: VoterSet, now_ms: int) -> None:
        """Use another voter set from now on; the progress of each replica is kept, voter or not."""
        former = {self._key_in(voters, each): each for each in self.progress.values()}
        known = {**self.observers, **former}
        self.voters = self.named = voters
        self.progress = {
            each.id: known.pop(each.key, ReplicaProgress(*each.key))._replace(directory_id=each.directory_id)
            for each in voters.voters
        }
        known.pop(self.key, None)
        self.observers = {key: each for key, each in known.items() if each.last_fetch_ms >= 0}
        self.heard &= set(self.progress)
        self.heard_at = {voter: at_ms for voter, at_ms in self.heard_at.items() if voter in self.progress}
        # A new voter has its time to be heard, and learns of this leader immediately.
        self.deadline_ms, self.begin_at_ms = now_ms + self.check_ms, now_ms

    def name(self, voter: Voter) -> None:
        """Note the addresses and versions that a voter has sent."""
        if self.voters.voter(voter.id) is not None:
            self.named = self.named.with_voter(voter)

    def _key_in(self, voters: VoterSet, known: ReplicaProgress) -> ReplicaKey:
        """Return a voter's key in another set: a static quorum did not name its directory."""
        entry = voters.voter(known.id) if known.directory_id == ZERO_UUID else None
        return ReplicaKey(known.id, known.directory_id) if entry is None else entry.key

    def is_caught_up(self, replica: ReplicaKey, now_ms: int) -> bool:
        """Return whether an observer has had everything once, and has fetched within an hour; as a voter it then delays no commit."""
        known = self.observers.get(replica)
        return known is not None and known.last_caught_up_ms >= 0 and known.last_fetch_ms > now_ms - CAUGHT_UP_MS

    @property
    def leader_id(self) -> int:
        return self.key.id

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.epoch, leader_id=self.key.id)

    @property
    def is_alone(self) -> bool:
        """Whether no other voter can be missed."""
        return set(self.progress) <= {self.key.id}

    def grants(self, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
        return False

    def unaware(self, now_ms: int) -> list[int]:
        """Return the voters that may not know of this leader, because the leader has heard nothing of them for some time, or ever.

        A voter that has lost its directory knows no other node.
        """
        since_ms, others = now_ms - self.check_ms, (voter for voter in self.progress if voter != self.key.id)
        return [voter for voter in others if voter not in self.heard_at or self.heard_at[voter] < since_ms]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, the longest log first."""
        others = [each for each in self.progress.values() if each.id != self.key.id]
        return tuple(
            ReplicaKey(each.id, each.directory_id) for each in sorted(others, key=lambda each: -each.end_offset)
        )

    def flushed(self, end_offset: int, now_ms: int) -> None:
        """Note the end of this node's log on disk."""
        own = self.progress.get(self.key.id)
        if own is not None:
            assert own.end_offset <= end_offset, f"the log went back from {own.end_offset} to {end_offset}"
            self.progress[self.key.id] = own._replace(
                end_offset=end_offset, last_fetch_ms=now_ms, last_caught_up_ms=now_ms
            )

    def fetched(self, replica: ReplicaKey, offset: int, log_end: LogEnd, now_ms: int) -> None:
        """Note that a replica has everything before `offset` on disk."""
        voter = self.progress.get(replica.id)
        is_voter = voter is not None and ReplicaKey(voter.id, voter.directory_id).names(replica)
        known = voter if is_voter else self.observers.get(replica)
        known = known or ReplicaProgress(replica.id, replica.directory_id)
        # Caught up if it has the log up to its end at the moment of the last fetch.
        caught_up_ms = now_ms if offset >= log_end.end_offset else known.last_caught_up_ms
        changed = known._replace(end_offset=offset, last_fetch_ms=now_ms, last_caught_up_ms=caught_up_ms)
        if is_voter:
            self.progress[replica.id] = changed
            self._hear(replica.id, now_ms)
        elif replica.id >= 0:  # A tool that reads the log is not a replica.
            if replica not in self.observers:
                self.forget_observers(now_ms)
            self.observers[replica] = changed

    def asked_for_snapshot(self, replica: ReplicaKey, now_ms: int) -> None:
        """Note that a replica takes a snapshot: it hears this leader, though it fetches no records."""
        voter = self.progress.get(replica.id)
        if voter is not None and ReplicaKey(voter.id, voter.directory_id).names(replica):
            self._hear(replica.id, now_ms)

    def forget_observers(self, now_ms: int) -> None:
        """Forget the observers that have not fetched for long."""
        oldest_ms = now_ms - OBSERVER_SESSION_MS
        self.observers = {key: each for key, each in self.observers.items() if each.last_fetch_ms >= oldest_ms}

    def _hear(self, voter: int, now_ms: int) -> None:
        self.heard.add(voter)
        self.heard_at[voter] = now_ms
        others = quorum.majority(len(self.progress)) - (self.key.id in self.progress)
        if len(self.heard) >= others:
            self.heard.clear()
            self.deadline_ms = now_ms + self.check_ms

    def advance(self) -> int:
        """Return the high watermark by the present progress of the voters."""
        ends = [each.end_offset for each in self.progress.values()]
        advanced = quorum.high_watermark(ends, self.epoch_start_offset, self.high_watermark)
        assert advanced >= self.high_watermark, "the high watermark never goes back"
        self.high_watermark = advanced
        return advanced

    def describe(self, clock: Clock) -> QuorumDescription:
        """Return the quorum's state; the leader itself is always caught up."""
        now_ms = clock.wall_ms()
        voters = tuple(
            each._replace(last_fetch_ms=now_ms, last_caught_up_ms=now_ms)
            if each.id == self.key.id
            else each.shown(clock)
            for each in self.progress.values()
        )
        self.forget_observers(clock.monotonic_ms())
        observers = tuple(each.shown(clock) for each in self.observers.values())
        return QuorumDescription(self.key.id, self.epoch, self.high_watermark, voters, observers)
