"""What the clients of a simulated run were told, in the order in which they were told it, and what its nodes believed. Checkers see only
this."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from tests.simulation.keyed_history import KeyedHistory
from tests.simulation.retention_history import RetentionHistory
from tests.simulation.share_history import ShareHistory
from tests.simulation.topic_operation import TopicOperation
from tests.simulation.tuning_history import TuningHistory
from tests.simulation.unclean_history import UncleanHistory


class Partition(NamedTuple):
    topic: str
    index: int  # type: ignore[assignment]  # nobody looks for a place in the tuple


@dataclass
class Batch:
    """One batch of an idempotent producer and its fate.

    `survives` says that its acknowledgement is still a promise after all crashes of the run: a power cut keeps only what was flushed, a
    kill everything that was acknowledged.
    """

    producer: str
    partition: Partition
    values: list[bytes]
    acknowledged_at: float | None = None
    base_offset: int = -1
    survives: bool = False


@dataclass
class Commit:
    """One OffsetCommit and whether it was answered without an error."""

    group: str
    partition: Partition
    offset: int
    acknowledged: bool = False
    survives: bool = False


@dataclass
class Transaction:
    """One transaction: where its batches were acknowledged, how it was to end, and whether that was acknowledged.

    `is_commit` is None while its producer has not asked for an end, which then never comes.
    """

    producer: str
    number: int
    partitions: list[Partition] = field(default_factory=list)
    has_offset: bool = False
    is_commit: bool | None = None
    acknowledged: bool = False

    @property
    def value(self) -> bytes:
        """What each of its records holds."""
        return f"{self.producer}:{self.number}".encode()


class Refusal(NamedTuple):
    """An error that ended a transactional producer, so that it began anew.

    Attributes:
        may_be_fenced: whether another producer of its id may have begun since, or the coordinator have ended its transaction: an
            InitProducerId of its own had no answer, or the transaction was open for longer than its timeout.
        is_of_the_replaced: whether the answer may be that of a leader that has been replaced while it was cut off.
    """

    producer: str
    code: ErrorCode
    may_be_fenced: bool = False
    is_of_the_replaced: bool = False


Owned = tuple[bytes | str, int]
"""A partition of a group: the topic's id, or its name if the group is a classic one, and the index."""


@dataclass
class Lease:
    """A member's ownership of a partition at an epoch; times are the world's.

    Attributes:
        is_asked_back: the coordinator took the partition from the assignment of the member, which stays.
    """

    group: str
    member: str
    partition: Owned
    since: float
    until: float = 0.0
    epoch: int = 0
    is_asked_back: bool = False


class OwnersRead(NamedTuple):
    """The committed offset that a new owner of a partition was told, and what had been acknowledged before it asked."""

    group: str
    member: str
    partition: Owned
    at_least: int
    found: int


class LateCommit(NamedTuple):
    """What a member was answered to a commit after another member had become the owner."""

    member: str
    partition: Owned
    epoch: int
    code: ErrorCode


class StartSeen(NamedTuple):
    """A log start that its leader named: at least what had been promised, at most what anybody had asked for.

    Attributes:
        shown: the first offset that a Fetch below what was promised has shown; -1 if none.
    """

    partition: Partition
    at_least: int
    start: int
    at_most: int
    shown: int = -1


class TimeLookup(NamedTuple):
    """An answer to the question for the offset of a time, -1 if it named none; every record below `known_end` was known before."""

    partition: Partition
    timestamp: int
    known_end: int
    offset: int
    said: int


@dataclass
class History:
    batches: list[Batch] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    """Every commit in the order sent. A group has one member for a partition, which sends the next commit when the last was answered."""
    final_logs: dict[Partition, list[tuple[int, bytes]]] = field(default_factory=dict)
    """What a reader from the log start sees at the end: (offset, value)."""
    final_bounds: dict[Partition, tuple[int, int]] = field(default_factory=dict)
    """Log start offset and log end offset at the end."""
    final_commits: dict[tuple[str, Partition], int] = field(default_factory=dict)
    commits_read: dict[tuple[str, Partition], list[int]] = field(default_factory=dict)
    """The offsets that a group's coordinator named, in order; -1 for none."""
    transactions: list[Transaction] = field(default_factory=list)
    final_committed: dict[Partition, list[bytes]] = field(default_factory=dict)
    """What a read_committed reader sees at the end."""
    seen_committed: dict[Partition, set[bytes]] = field(default_factory=dict)
    """What read_committed readers saw at any time."""
    leases: list[Lease] = field(default_factory=list)
    """When which member owned which partition."""
    member_epochs: dict[str, int] = field(default_factory=dict)
    """The last epoch that a coordinator told a member."""
    trims_asked: dict[Partition, int] = field(default_factory=dict)
    """Up to where somebody has asked to delete records."""
    trims_promised: dict[Partition, int] = field(default_factory=dict)
    """Up to where that was acknowledged, while a replica knows it."""
    trims: int = 0
    """How many were acknowledged."""
    starts_seen: list[StartSeen] = field(default_factory=list)
    late_commits: list[LateCommit] = field(default_factory=list)
    shared: ShareHistory = field(default_factory=ShareHistory)
    """Of the share group."""
    retention: RetentionHistory = field(default_factory=RetentionHistory)
    """Of the topic whose old records are deleted."""
    keyed: KeyedHistory = field(default_factory=KeyedHistory)
    """Of the topic that is compacted."""
    unclean: UncleanHistory = field(default_factory=UncleanHistory)
    """Of the topic that may elect a leader which lacks records."""
    tuning: TuningHistory = field(default_factory=TuningHistory)
    """Of settings, partition counts, quotas and feature levels."""
    owners_offsets: dict[tuple[str, Owned], int] = field(default_factory=dict)
    """The highest offset that an owner of a partition was told it has committed, by group."""
    owners_reads: list[OwnersRead] = field(default_factory=list)
    heartbeats: Counter[str] = field(default_factory=Counter)
    """How many of each member were answered without an error."""
    refusals: list[Refusal] = field(default_factory=list)
    """Every error that ended a transactional producer."""
    seen: dict[Partition, dict[int, bytes]] = field(default_factory=dict)
    """What readers saw at any time, by offset, and no power cut may have taken."""
    stamps: dict[Partition, dict[int, int]] = field(default_factory=dict)
    """The timestamps that a reader saw, by offset."""
    lookups: list[TimeLookup] = field(default_factory=list)
    far_reads: int = 0
    """How many answers came from followers."""
    shown_early: list[str] = field(default_factory=list)
    """What followers have shown that was not committed."""
    final_transactional_offsets: dict[str, int] = field(default_factory=dict)
    """Of the group of each transactional producer."""
    held_back: list[str] = field(default_factory=list)
    """Partitions whose last stable offset stays behind at the end."""
    created_topics: list[str] = field(default_factory=list)
    """Those whose creation was acknowledged."""
    topic_operations: list[TopicOperation] = field(default_factory=list)
    """On the topic that several clients create and delete, in the order in which they began."""
    final_topics: set[str] | None = None
    """All that exist at the end; None if the run broke off before."""
    lost_unflushed_writes: bool = False
    deleted_ids: dict[bytes, None] = field(default_factory=dict)
    """The ids of the topics that the recreator has created and deleted under one name."""
    recreated: dict[int, bytes] = field(default_factory=dict)
    """What is promised of the present topic of that name: the values by offset."""
    final_recreated: list[tuple[int, bytes]] | None = None
    """What it has at the end; None if there is no such topic, or the run broke off before."""
    moves: int = 0
    """How many moves of partitions were accepted."""
    removed_voters: int = 0
    """How many removals of voters were acknowledged."""
    lost_identities: list[str] = field(default_factory=list)
    """Producers whose former records a leader did not know; on one broker a power cut may be the reason."""
    leaders_seen: dict[tuple[Partition, int], set[int]] = field(default_factory=dict)
    """Who led a partition in an epoch, as the nodes' images said at any time."""
    controllers_seen: dict[int, set[int]] = field(default_factory=dict)
    """Who led the quorum in an epoch."""
    ends_seen: dict[tuple[str, Partition], list[int]] = field(default_factory=dict)
    """The end offsets that each client was told, in order."""
    images_seen: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    """By metadata offset: a digest of the image there, and the nodes that had it."""
    final_replicas: dict[Partition, dict[str, list[tuple[int, bytes]]]] = field(default_factory=dict)
    """By node: the batches of its replica at the end, below the high watermark, as (base offset, bytes)."""
    failed_directories: list[str] = field(default_factory=list)
    """What should have followed when a directory failed, and did not."""
    stalls: list[str] = field(default_factory=list)
    """What did not go on in time, when nothing disturbed the cluster any more."""
    recoveries: list[tuple[float, str]] = field(default_factory=list)
    """For each start after a crash: virtual seconds it took, and what went wrong, if anything."""
    crashes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Exceptions that reached an event loop: always a fault of the broker."""

    def tally(self) -> Counter[str]:
        """Return how often things were seen that only some worlds have, and which of these worlds did not see them."""
        return Counter({**self.retention.tally(), **self.keyed.tally(), **self.unclean.tally(), **self.tuning.tally()})

    def power_cut(self, flushed: bool) -> None:
        """A power cut breaks every promise that was not flushed to disk."""
        self.crashes.append("power cut")
        if not flushed:
            self.lost_unflushed_writes = True
            self.seen.clear()
            self.leases.clear()
            self.owners_offsets.clear()
            for batch in self.batches:
                batch.survives = False
            for commit in self.commits:
                commit.survives = False

    def kill(self) -> None:
        """A killed process leaves the page cache to the system: every promise stands."""
        self.crashes.append("kill")
