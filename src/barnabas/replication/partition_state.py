"""The in-sync replicas (ISR) of a partition as its leader knows them: committed, or with a change that the controller has not answered.

                          expand                completed
    CommittedPartitionState ──► PendingExpandIsr ──► CommittedPartitionState    the controller's answer
                │         shrink                failed
                └──────────────► PendingShrinkIsr ──► the last committed state  if the controller has surely not applied it

- The controller decides; the leader proposes with AlterPartition, one change at a time. While a change is open the controller may have
  applied it or not. The *maximal* ISR holds for both: it has the replica that may join, and still those that may leave. The high
  watermark waits for all of them, so each replica that the controller may elect has every committed record (KIP-497).
- min.insync.replicas is compared with the committed ISR: a replica that may join does not count yet.
- `partition_epoch` is that of the last committed change. The controller rejects a proposal that was made for an older one.
- A change ends by an answer, or by newer metadata. A lost answer, or an error that leaves the outcome open, ends nothing.
- A proposal names each replica's broker epoch from its last fetch. So the controller notices if the broker has restarted, possibly
  without its last records (KIP-903).

The states are immutable; `Partition` has the current one. A leader has recovered its log when it begins to lead, so a proposal's leader
recovery state is always RECOVERED.

Source: Kafka's `PartitionState`, `CommittedPartitionState`, `PendingExpandIsr`, `PendingShrinkIsr`; KIP-497, KIP-841, KIP-903.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode

__all__ = [
    "CommittedPartitionState",
    "IsrProposal",
    "PartitionState",
    "PendingExpandIsr",
    "PendingIsrChange",
    "PendingShrinkIsr",
]

UNKNOWN_BROKER_EPOCH = -1
NOT_APPLIED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""Errors by which the controller says that the partition epoch is the current one and the change was not applied."""
FINAL = NOT_APPLIED | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
}
"""Errors after which the same request cannot succeed. Except for `NOT_APPLIED` the change stays open until newer metadata arrives."""


class IsrProposal(NamedTuple):
    """The ISR of an AlterPartition request: all of it, each broker with its epoch (-1 if unknown)."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """An ISR that the controller has committed."""

    isr: tuple[int, ...]
    partition_epoch: int

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr

    def expand(self, replica_id: int, leader_epoch: int, broker_epochs: Mapping[int, int]) -> PendingExpandIsr:
        """Propose that a follower joins.

        Args:
            broker_epochs: those that are known.
        """
        assert replica_id not in self.isr, f"{replica_id} is in {self}"
        # In the order of Kafka's hash set, which tools show.
        maximal_isr = tuple(sorted((*self.isr, replica_id)))
        return PendingExpandIsr(self, self._proposal(maximal_isr, leader_epoch, broker_epochs), maximal_isr)

    def shrink(
        self, replica_ids: Collection[int], leader_epoch: int, broker_epochs: Mapping[int, int]
    ) -> PendingShrinkIsr:
        """Propose that followers leave; `broker_epochs` as in `expand`."""
        isr = tuple(member for member in self.isr if member not in replica_ids)
        assert len(isr) == len(self.isr) - len(replica_ids), f"{replica_ids} are not in {self}"
        return PendingShrinkIsr(self, self._proposal(isr, leader_epoch, broker_epochs), self.isr)

    def _proposal(self, isr: tuple[int, ...], leader_epoch: int, broker_epochs: Mapping[int, int]) -> IsrProposal:
        members = tuple((member, broker_epochs.get(member, UNKNOWN_BROKER_EPOCH)) for member in isr)
        return IsrProposal(leader_epoch, self.partition_epoch, members)


@dataclass(frozen=True, slots=True, eq=False)
class PendingIsrChange:
    """A proposed change. Two changes with equal fields are different changes: each has its own answer."""

    last_committed: CommittedPartitionState
    sent: IsrProposal
    maximal_isr: tuple[int, ...]

    @property
    def isr(self) -> tuple[int, ...]:
        return self.last_committed.isr

    @property
    def partition_epoch(self) -> int:
        return self.last_committed.partition_epoch

    def completed(self, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> PartitionState:
        """Return the state after an answer without an error.

        An answer from another leader epoch or an older partition epoch says nothing about the present; newer metadata will come.
        """
        if leader_epoch != self.sent.leader_epoch or partition_epoch < self.partition_epoch:
            return self
        return CommittedPartitionState(isr, partition_epoch)

    def failed(self, code: ErrorCode) -> PartitionState:
        """Return the state after an error of the controller, or of the connection to it."""
        return self.last_committed if code in NOT_APPLIED else self

    @staticmethod
    def is_sent_again(code: ErrorCode) -> bool:
        """Return whether the same request is to be sent again after an error."""
        return code not in FINAL


class PendingExpandIsr(PendingIsrChange):
    """A follower may have joined: the high watermark waits for it already."""

    __slots__ = ()


class PendingShrinkIsr(PendingIsrChange):
    """Followers may have left: the high watermark waits for them still."""

    __slots__ = ()


PartitionState = CommittedPartitionState | PendingIsrChange
