"""The replicas of a partition on their way from one list of brokers to another.

    [1, 2, 3] is to become [3, 4]       replicas 3, 4, 1, 2   adding 4   removing 1, 2
    4 is in the ISR                     replicas 3, 4

The change after which each target replica is in the ISR completes the reassignment. If the reassignment is cancelled, the replicas that
it adds leave, and those that it removes stay.

Source: KIP-455; Kafka's `PartitionReassignmentReplicas`, `PartitionReassignmentRevert`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.metadata.partition_registration import PartitionRegistration


class Reverted(NamedTuple):
    """The replicas and the ISR of a cancelled reassignment; `is_unclean` if the ISR had none of the replicas that stay."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    is_unclean: bool


class ReassignmentReplicas(NamedTuple):
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @classmethod
    def between(cls, current: Sequence[int], target: Sequence[int]) -> ReassignmentReplicas:
        """Return the first step from the current replicas to the target: the replicas that leave are at the end of the list."""
        removing = tuple(sorted(set(current) - set(target)))
        return cls((*target, *removing), tuple(sorted(set(target) - set(current))), removing)

    @property
    def target(self) -> tuple[int, ...]:
        return _without(self.replicas, self.removing)

    def is_completed_by(self, isr: Sequence[int]) -> bool:
        """Return whether a reassignment is in progress and each replica that stays is in this ISR."""
        return bool(self.adding or self.removing) and bool(self.target) and set(self.target).issubset(isr)


def revert(partition: PartitionRegistration) -> Reverted | None:
    """Return what a partition becomes when its reassignment is cancelled; None if no replica would stay."""
    replicas, isr = (_without(each, partition.adding_replicas) for each in (partition.replicas, partition.isr))
    if isr or not replicas:
        return Reverted(replicas, isr, is_unclean=False) if replicas else None
    return Reverted(replicas, replicas[:1], is_unclean=True)


def _without(replicas: Sequence[int], gone: Sequence[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in gone)
