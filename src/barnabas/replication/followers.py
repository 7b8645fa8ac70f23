"""The followers of one partition, at its leader: how far they are, which of them lag, and which may join the in-sync replicas (ISR).

The high watermark waits for the maximal ISR (see `partition_state`). It also waits for a follower that is caught up and may join: if the
leader alone is in the ISR, its end would otherwise run ahead of a follower that is about to join, again and again.

Source: Kafka's `Partition.maybeIncrementLeaderHW`, `isReplicaIsrEligible`, `getOutOfSyncReplicas`, `addBrokerEpochToIsr`; KIP-841, KIP-903.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from barnabas.replication.replica import NEVER_MS, Replica

__all__ = ["BrokerStates", "Followers"]


class BrokerStates(Protocol):
    """The part of the ReplicaManager that knows the other brokers and the time.

    Attributes:
        lag_time_max_ms: replica.lag.time.max.ms.
    """

    lag_time_max_ms: int

    def monotonic_ms(self) -> int:
        """Return the time for lags."""
        ...

    def broker_epoch(self, broker_id: int) -> int:
        """Return the epoch with which a broker is registered, -1 if it is not."""
        ...

    def is_in_service(self, broker_id: int) -> bool:
        """Return whether a broker is registered, not fenced, and not in controlled shutdown."""
        ...


class Followers:
    """The other replicas' brokers.

    Args:
        replica_ids: of all replicas but the leader's.
        isr: the followers in it count as caught up until they had time to fetch.
        known: of the same leader epoch; their state stays.
    """

    __slots__ = ("_brokers", "_replicas")

    def __init__(
        self,
        brokers: BrokerStates,
        replica_ids: Collection[int],
        isr: Collection[int],
        known: Followers | None = None,
    ) -> None:
        now_ms = brokers.monotonic_ms()
        before: dict[int, Replica] = {} if known is None else known._replicas
        self._brokers = brokers
        self._replicas: dict[int, Replica] = {
            replica_id: before.get(replica_id) or Replica(replica_id, now_ms if replica_id in isr else NEVER_MS)
            for replica_id in replica_ids
        }

    def __repr__(self) -> str:
        return f"<Followers {' '.join(f'{each.broker_id}={each.log_end_offset}' for each in self._replicas.values())}>"

    def __contains__(self, replica_id: int) -> bool:
        return replica_id in self._replicas

    def fetched(
        self, replica_id: int, fetch_offset: int, log_start_offset: int, broker_epoch: int, leader_end_offset: int
    ) -> None:
        """Record a fetch of one follower; see `Replica.fetched`."""
        self._replicas[replica_id].fetched(
            fetch_offset, log_start_offset, broker_epoch, leader_end_offset, self._brokers.monotonic_ms()
        )

    def leader_appended(self, before: int) -> None:
        """Note that the leader's log ended at `before` until now."""
        now_ms = self._brokers.monotonic_ms()
        for follower in self._replicas.values():
            follower.leader_appended(before, now_ms)

    def smallest_end(self, leader_end_offset: int, maximal_isr: Collection[int]) -> int:
        """Return the offset below which the leader and every follower that the high watermark waits for have all records."""
        end = leader_end_offset
        for follower in self._replicas.values():
            if follower.log_end_offset < end and (
                follower.broker_id in maximal_isr
                or (self._is_caught_up(follower, leader_end_offset) and self._is_eligible(follower))
            ):
                end = follower.log_end_offset
        return end

    def smallest_start(self, leader_start_offset: int) -> int:
        """Return the smallest log start of the leader and the followers in service; -1 if one of them has not fetched yet."""
        start = leader_start_offset
        for follower in self._replicas.values():
            if follower.log_start_offset < start and self._brokers.is_in_service(follower.broker_id):
                start = follower.log_start_offset
        return start

    def states(self) -> Collection[Replica]:
        """Return what is known of each follower."""
        return self._replicas.values()

    def may_join(self, replica_id: int, from_offset: int) -> bool:
        """Return whether a follower has all records below an offset, and its broker is eligible for the ISR."""
        follower = self._replicas.get(replica_id)
        return follower is not None and follower.log_end_offset >= from_offset and self._is_eligible(follower)

    def caught_up(self, leader_end_offset: int) -> list[int]:
        """Return the followers that have the leader's whole log, or had it less than replica.lag.time.max.ms ago."""
        return [
            replica_id
            for replica_id, follower in self._replicas.items()
            if self._is_caught_up(follower, leader_end_offset)
        ]

    def late(self, isr: Collection[int], leader_end_offset: int) -> list[int]:
        """Return the followers in the ISR that have not been caught up for replica.lag.time.max.ms."""
        return [
            replica_id
            for replica_id, follower in self._replicas.items()
            if replica_id in isr and not self._is_caught_up(follower, leader_end_offset)
        ]

    def broker_epochs(self) -> dict[int, int]:
        """Return the broker epochs of the followers that have fetched."""
        return {
            replica_id: follower.broker_epoch
            for replica_id, follower in self._replicas.items()
            if follower.broker_epoch is not None
        }

    def _is_caught_up(self, follower: Replica, leader_end_offset: int) -> bool:
        brokers = self._brokers
        return follower.is_caught_up(leader_end_offset, brokers.monotonic_ms(), brokers.lag_time_max_ms)

    def _is_eligible(self, follower: Replica) -> bool:
        """Return whether the broker is in service and still the incarnation that fetched; epoch -1 in the fetch matches any incarnation."""
        broker_id, epoch = follower.broker_id, follower.broker_epoch
        return self._brokers.is_in_service(broker_id) and epoch in (-1, self._brokers.broker_epoch(broker_id))
