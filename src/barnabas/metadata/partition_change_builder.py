"""The record that changes a partition: its leader, its in-sync replicas and its eligible leader replicas.

Every event of a replica ends here, so the rules are written once: its broker is fenced, comes back, shuts down cleanly, restarts after a
crash; the leader alters the ISR; a client elects leaders or moves replicas. The caller sets the ISR or the replicas that it wants; `build`
adds what follows from them.

Three lists, from the safest to the last resort
- `isr`: replicas that have every acknowledged record.
- `elr`: eligible leader replicas. While the ISR has fewer members than min.insync.replicas, the high watermark stands still.
  So a replica that leaves the ISR in this time still has every record below the high watermark, and may lead without loss.
  It stays eligible until it is in the ISR again, until its broker restarts after a crash (the disk may have lost records), or
  until the ISR has min.insync.replicas members again, which may then acknowledge records without it.
- `last_known_elr`: while the ISR is empty, the one replica that led last. It may have lost records.

With the feature eligible.leader.replicas.version an ISR may become empty: its last member moves to the ELR. Without the feature
the last member stays in the ISR, and the two other lists are empty.

An election chooses the first of these whose broker is active and whose directory is online
1. the first replica of the list, in a PREFERRED election, if it may lead; else
2. the present leader, if it may lead; else
3. the first replica, in the order of the replica list, that may lead; else
4. the replica with the longest log, if the feature is on and ISR and ELR are empty (`unclean_recovery`), and in an UNCLEAN election; else
5. the first replica of all, in an UNCLEAN election.

A replica may lead if it is in the ISR, or in the ELR while the ISR is empty. 4 and 5 may lose records: the partition is marked as
recovering, and its ELR is forgotten. In 3 (from the ELR), 4 and 5 the ISR becomes the new leader alone.

Any change that brings all targets of a reassignment into the ISR completes it: the replicas that it removes leave the ISR and the list.

The leader epoch rises with a new leader. It also rises with the same leader if a replica is removed, which must not serve this epoch any
more, and before metadata.version 3.6-IV0 if a replica leaves the ISR, because brokers of that time needed it (KAFKA-15021).

Differences from Kafka
- A partition that loses its last in-sync replica while it has no leader keeps that replica as the last known leader. Kafka writes -1,
  which is no broker's id.
- A replica that a reassignment removes does not become eligible.
- The last known leader is not elected while its broker is not active (as in Kafka since KAFKA-19522), nor while another replica has
  the longer log, or may have it (the second part of KIP-966).
- After an election from the ELR the other members stay eligible only if one in-sync replica is not enough to acknowledge records.

Sources: KIP-966; Kafka's `PartitionChangeBuilder`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import NamedTuple

from barnabas.metadata.directory_ids import MIGRATING, UNASSIGNED
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.partition_registration import (
    LEADER_RECOVERING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    PartitionRegistration,
)
from barnabas.metadata.reassignment_replicas import ReassignmentReplicas
from barnabas.protocol import messages

NO_BUMP_ON_SHRINK = 12
"""3.6-IV0, from which on the leader epoch stays when the ISR shrinks."""
NAMED_DIRECTORIES = 17
"""3.7-IV2, from which on partitions say in which directory a replica is."""
NO_RECOVERY_CHANGE = -1


class Election(enum.Enum):
    """How far an election may go: ONLINE keeps a leader that may lead; the module's docstring explains the others."""

    PREFERRED = 0
    ONLINE = 1
    UNCLEAN = 2


class ElectionRules(NamedTuple):
    """The parts of a decision about a partition that are not in its own state.

    Attributes:
        is_acceptable: whether the replica on a broker could lead: the broker is active, its directory online.
        min_isr: min.insync.replicas of the topic, at most its replication factor.
        elr_enabled: whether eligible.leader.replicas.version is finalized.
        metadata_version: the level that is finalized.
        default_directory: where a broker puts a new replica.
        recover: returns which acceptable replica leads where ISR and ELR are empty: -1 for none yet, None where no log is known, so
            that the last known leader leads.
    """

    is_acceptable: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    metadata_version: int = LATEST_PRODUCTION
    default_directory: Callable[[int], bytes] = lambda _: UNASSIGNED
    recover: Callable[[], int | None] = lambda: None


class Elected(NamedTuple):
    """The outcome of an election; `leader` is -1 if no replica can lead."""

    leader: int
    is_unclean: bool = False


class PartitionChangeBuilder:
    """Collects the wanted changes of a partition; see the module's docstring.

    Attributes:
        isr: the wanted ISR; the same as now if it is not set.
        replicas, adding_replicas, removing_replicas, leader_recovery_state: likewise.
        directories: by broker, where its replica is.
        lost: replicas whose disk may have lost records, which are therefore not eligible.
    """

    __slots__ = (
        "_elr",
        "_partition",
        "_rules",
        "adding_replicas",
        "directories",
        "isr",
        "leader_recovery_state",
        "lost",
        "removing_replicas",
        "replicas",
    )

    def __init__(self, partition: PartitionRegistration, rules: ElectionRules) -> None:
        self.isr = partition.isr
        self.replicas = partition.replicas
        self.adding_replicas = partition.adding_replicas
        self.removing_replicas = partition.removing_replicas
        self.leader_recovery_state = partition.leader_recovery_state
        self.directories: dict[int, bytes] = {}
        self.lost: frozenset[int] = frozenset()
        self._elr = partition.elr
        self._partition = partition
        self._rules = rules

    def __repr__(self) -> str:
        return f"<PartitionChangeBuilder isr={self.isr} elr={self._elr} of {self._partition}>"

    def build(self, topic_id: bytes, index: int) -> messages.PartitionChangeRecord | None:
        """Return the record, or None if nothing changes."""
        old = self._partition
        self._complete_reassignment()
        if self._rules.elr_enabled:
            self._elr = self._eligible()
        elected = self._elect()
        is_new = elected.leader != old.leader
        if is_new and elected.is_unclean:
            self.isr, self._elr = (elected.leader,), ()
            self.leader_recovery_state = LEADER_RECOVERING
        elif is_new and elected.leader in self._elr:
            self.isr = (elected.leader,)
            is_enough = self._rules.min_isr <= 1
            self._elr = () if is_enough else tuple(replica for replica in self._elr if replica != elected.leader)
        if not self._rules.elr_enabled:
            self._elr = ()
            # The record has to say which replica may lead again.
            self.isr = self.isr or old.isr
        record = messages.PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        if is_new:
            record.leader = elected.leader
        elif self._ends_epoch():
            record.leader = old.leader
        self._set_lists(record)
        if self.leader_recovery_state != old.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        return None if _is_empty(record) else record

    def _complete_reassignment(self) -> None:
        moving = ReassignmentReplicas(self.replicas, self.adding_replicas, self.removing_replicas)
        if moving.is_completed_by(self.isr):
            self.replicas = moving.target
            self.isr = tuple(replica for replica in self.isr if replica in moving.target)
            self.adding_replicas = self.removing_replicas = ()

    def _ends_epoch(self) -> bool:
        """Return whether a change that keeps the leader ends its epoch."""
        old = self._partition
        if not set(self.replicas).issuperset(old.replicas):
            return True
        return self._rules.metadata_version < NO_BUMP_ON_SHRINK and not set(self.isr).issuperset(old.isr)

    def _eligible(self) -> tuple[int, ...]:
        if len(self.isr) >= self._rules.min_isr:
            return ()
        old = self._partition
        candidates = {*old.elr, *old.isr} - set(self.isr) - self.lost
        return tuple(sorted(candidates.intersection(self.replicas)))

    def _may_lead(self, replica: int) -> bool:
        eligible = self.isr or self._elr
        return replica in eligible and self._rules.is_acceptable(replica)

    def _elect(self) -> Elected:
        old, rules = self._partition, self._rules
        if rules.election is Election.PREFERRED and self._may_lead(self.replicas[0]):
            return Elected(self.replicas[0])
        if self._may_lead(old.leader):
            return Elected(old.leader)
        for replica in self.replicas:
            if self._may_lead(replica):
                return Elected(replica)
        is_lost = rules.elr_enabled and not self.isr and not self._elr
        if is_lost or rules.election is Election.UNCLEAN:
            longest = rules.recover()
            if (
                longest is None
                and is_lost
                and len(old.last_known_elr) == 1
                and rules.is_acceptable(old.last_known_elr[0])
            ):
                (longest,) = old.last_known_elr
            if longest not in (None, NO_LEADER):
                return Elected(longest, is_unclean=True)
        if rules.election is Election.UNCLEAN:
            for replica in self.replicas:
                if rules.is_acceptable(replica):
                    return Elected(replica, is_unclean=True)
        return Elected(NO_LEADER)

    def _set_lists(self, record: messages.PartitionChangeRecord) -> None:
        old = self._partition
        if self.isr != old.isr:
            record.isr = list(self.isr)
        if self._elr != old.elr:
            record.eligible_leader_replicas = list(self._elr)
        if self._rules.elr_enabled:
            last = self._last_known(old.leader if record.leader == NO_LEADER_CHANGE else record.leader)
            if last != old.last_known_elr:
                record.last_known_elr = list(last)
        if self.replicas != old.replicas:
            record.replicas = list(self.replicas)
        if self.replicas != old.replicas or self.directories:
            self._set_directories(record)
        if self.adding_replicas != old.adding_replicas:
            record.adding_replicas = list(self.adding_replicas)
        if self.removing_replicas != old.removing_replicas:
            record.removing_replicas = list(self.removing_replicas)

    def _set_directories(self, record: messages.PartitionChangeRecord) -> None:
        if self._rules.metadata_version < NAMED_DIRECTORIES:
            return
        old = self._partition
        known = dict(zip_longest(old.replicas, old.directories, fillvalue=MIGRATING)) | self.directories
        directories = [known.get(replica) or self._rules.default_directory(replica) for replica in self.replicas]
        if directories != list(old.directories):
            record.directories = directories

    def _last_known(self, leader: int) -> tuple[int, ...]:
        """Return who led last, for a partition that has this leader from now on."""
        old = self._partition
        if leader != NO_LEADER:
            return ()
        if self.isr or not old.isr:
            return old.last_known_elr
        return (old.leader,) if old.leader != NO_LEADER else old.isr[:1]


def _is_empty(record: messages.PartitionChangeRecord) -> bool:
    lists: Iterable[object] = (
        record.isr,
        record.replicas,
        record.eligible_leader_replicas,
        record.last_known_elr,
        record.directories,
        record.adding_replicas,
        record.removing_replicas,
    )
    is_kept = record.leader == NO_LEADER_CHANGE and record.leader_recovery_state == NO_RECOVERY_CHANGE
    return is_kept and all(each is None for each in lists)
