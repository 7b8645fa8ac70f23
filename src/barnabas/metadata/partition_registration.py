"""One partition as the metadata log describes it: its replicas, its leader, and its in-sync replicas.

`leader` is -1 if the partition has none; `leader_epoch` and `partition_epoch` never go back for one topic id.

Sources: Kafka's `PartitionRegistration`; PartitionRecord, PartitionChangeRecord; KIP-966 for the eligible leader replicas.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol import messages

__all__ = ["LEADER_RECOVERED", "LEADER_RECOVERING", "NO_LEADER", "NO_LEADER_CHANGE", "PartitionRegistration"]

NO_LEADER = -1
NO_LEADER_CHANGE = -2
LEADER_RECOVERED = 0
LEADER_RECOVERING = 1


class PartitionRegistration(NamedTuple):
    """A partition's replicas, in-sync replicas and leader. A tuple, because a broker holds thousands of them."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = LEADER_RECOVERED

    @classmethod
    def from_record(cls, record: messages.PartitionRecord) -> PartitionRegistration:
        replicas = tuple(record.replicas)
        isr = tuple(record.isr)
        return cls(
            replicas,
            replicas if isr == replicas else isr,
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.directories),
            tuple(record.removing_replicas),
            tuple(record.adding_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            record.leader_recovery_state,
        )

    def changed_by(self, record: messages.PartitionChangeRecord) -> PartitionRegistration:
        """Return the registration after this change; fields that the record leaves out stay."""
        leader, leader_epoch = self.leader, self.leader_epoch
        if record.leader != NO_LEADER_CHANGE:
            leader, leader_epoch = record.leader, leader_epoch + 1
        recovery = record.leader_recovery_state
        return PartitionRegistration(
            _or_kept(record.replicas, self.replicas),
            _or_kept(record.isr, self.isr),
            leader,
            leader_epoch,
            self.partition_epoch + 1,
            self.directories if record.directories is None else tuple(record.directories),
            _or_kept(record.removing_replicas, self.removing_replicas),
            _or_kept(record.adding_replicas, self.adding_replicas),
            _or_kept(record.eligible_leader_replicas, self.elr),
            _or_kept(record.last_known_elr, self.last_known_elr),
            self.leader_recovery_state if recovery < 0 else recovery,
        )

    def to_record(self, topic_id: bytes, partition_id: int) -> messages.PartitionRecord:
        return messages.PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.elr) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)


def _or_kept(changed: list[int] | None, kept: tuple[int, ...]) -> tuple[int, ...]:
    return kept if changed is None else tuple(changed)
