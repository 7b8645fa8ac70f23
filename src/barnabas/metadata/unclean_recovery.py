"""Unclean recovery (KIP-966): which replica leads a partition that has neither in-sync nor eligible replicas.

All of its replicas may have lost records, each another number of them. The one with the longest log leads: the highest leader epoch of a
last record, then the highest end offset. What is acknowledged is in its log if it is in any log that the controller knows.

    unclean.recovery.strategy    such a partition gets
    None                         no leader, until an operator elects one
    Balanced                     the longest log; the rules are below
    Aggressive                   the longest log of those known at this moment, as with unclean.leader.election.enable=true

Balanced
- The last known leader must be in service and have said what its log has. Without it no other replica is elected: it may be the only one
  that has everything.
- The partition waits for all other replicas too, for `unclean.recovery.timeout.ms` at most, and for none whose broker is unregistered.
- If a broker of its replicas is in service and does not speak of its logs (Apache Kafka's do not), the last known leader is elected
  without a wait, as Apache Kafka's controller does: nothing would be gained by a longer wait.
- A last known leader that returns with an empty disk loses that role (`assign_replicas`): the partition waits for an operator.

An election that an operator asks for does not wait. It takes the longest of the logs that are known, and, if none is, the last known
leader or any replica.

Apache Kafka's controller elects the last known leader without a look at any log; the second part of KIP-966 is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.metadata.partition_registration import NO_LEADER

if TYPE_CHECKING:
    from barnabas.metadata.controller_view import ControllerView
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.metadata.replica_logs import Key, ReplicaLog

__all__ = ["AGGRESSIVE", "BALANCED", "NONE", "Recovery"]

NONE, BALANCED, AGGRESSIVE = "None", "Balanced", "Aggressive"


class Recovery:
    """The choice for one partition.

    Args:
        key: the partition's topic id and index.
        is_acceptable: whether the replica on a broker could lead.
    """

    __slots__ = ("_is_acceptable", "_key", "_partition", "_view")

    def __init__(
        self, view: ControllerView, key: Key, partition: PartitionRegistration, is_acceptable: Callable[[int], bool]
    ) -> None:
        self._view, self._key, self._partition, self._is_acceptable = view, key, partition, is_acceptable

    def __repr__(self) -> str:
        return f"<Recovery of {self._partition}>"

    def automatic(self) -> int:
        """Return which replica the partition gets as its leader now; -1 while it waits."""
        view, partition = self._view, self._partition
        if view.settings.unclean_recovery_strategy == NONE or len(partition.last_known_elr) != 1:
            return NO_LEADER
        (last,) = partition.last_known_elr
        if not self._is_acceptable(last):
            return NO_LEADER
        epochs = self._broker_epochs()
        mute = self._view.sessions.logs.mute
        if list(epochs) == [last] or any(replica in mute and self._is_acceptable(replica) for replica in epochs):
            return last
        has_waited = self._has_waited()
        logs = self._known(epochs)
        if last not in logs or (len(logs) < len(epochs) and not has_waited):
            return NO_LEADER
        longest = self._longest(logs, among=logs)
        # One that cannot lead at this moment is waited for as one that has said nothing.
        return self._longest(logs) if has_waited or self._is_acceptable(longest) else NO_LEADER

    def at_once(self) -> int | None:
        """Return which of the replicas that can lead has the longest log; None if no such log is known."""
        longest = self._longest(self._known(self._broker_epochs()))
        return None if longest == NO_LEADER else longest

    def _broker_epochs(self) -> dict[int, int]:
        brokers = self._view.image.cluster.brokers
        return {replica: brokers[replica].epoch for replica in self._partition.replicas if replica in brokers}

    def _known(self, epochs: dict[int, int]) -> dict[int, ReplicaLog]:
        return self._view.sessions.logs.known(self._key, self._partition.leader_epoch, epochs)

    def _has_waited(self) -> bool:
        view, leader_epoch = self._view, self._partition.leader_epoch
        waited_ms = view.sessions.logs.waits_for_ms(self._key, leader_epoch, view.now_ms)
        return waited_ms >= view.settings.unclean_recovery_timeout_ms

    def _longest(self, logs: dict[int, ReplicaLog], among: Iterable[int] | None = None) -> int:
        """Return the replica with the longest log: of equal ones the last known leader, then the first in the list.

        Args:
            among: the replicas to choose from; None for those that can lead.
        """
        if among is None:
            among = filter(self._is_acceptable, logs)
        last = self._partition.last_known_elr
        return max(among, key=lambda replica: (logs[replica].rank, replica in last), default=NO_LEADER)
