"""The fetchers of a broker: num.replica.fetchers for each leader that it follows.

    follow(partition) ──► a fetcher of its leader ──► ReplicaFetcherLoop ──► LeaderEndPoint of that broker
                     └──► leaves the fetcher before

- A partition is in one fetcher, by its leader and the hash of its name, as in Kafka. A partition without a leader is in none.
- Each fetcher has its own request under way, so several of them wait for one leader at the same time. They share one processor.
- `resize` moves each partition to its new fetcher. The answers that are under way for it are dropped.
- A fetcher ends with its last partition. The next partition of that leader begins another one.
- A leader's address may change while it is followed; the `LeaderEndPoint` sees to it. A lost connection delays a fetcher by
  replica.fetch.backoff.ms.

Source: Kafka's `ReplicaFetcherManager`, `AbstractFetcherManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from barnabas.metadata.partition_registration import NO_LEADER
from barnabas.protocol.partition_for import string_hash
from barnabas.replication.leader_end_point import LeaderEndPoint
from barnabas.replication.partition import Partition
from barnabas.replication.partition_fetch_state import PartitionKey
from barnabas.replication.replica_fetcher import FetcherConfig, ReplicaFetcher
from barnabas.replication.replica_fetcher_loop import ReplicaFetcherLoop
from barnabas.replication.replica_quota import UNBOUNDED, ReplicaQuota

__all__ = ["FetcherId", "ReplicaFetcherManager"]


class FetcherId(NamedTuple):
    """One of the fetchers of a leader, from 0; Kafka's `BrokerIdAndFetcherId`."""

    leader: int
    number: int


def fetcher_number(topic: str, index: int, fetchers: int) -> int:
    """Return which of a leader's fetchers has a partition (`AbstractFetcherManager.getFetcherId`, in Java's integers)."""
    mixed = (31 * string_hash(topic) + index) & 0xFFFFFFFF
    magnitude = mixed if mixed < 1 << 31 else (1 << 32) - mixed
    # Kafka's Utils.abs returns 0 for the smallest integer, which has no positive counterpart.
    return (0 if mixed == 1 << 31 else magnitude) % fetchers


class ReplicaFetcherManager:
    """The followed partitions.

    Args:
        connect: returns the end point of a broker for one fetcher; it fails when it is used, not here.
        broker_epoch, advanced, quota: as `ReplicaFetcher`.
        fetchers_per_leader: num.replica.fetchers.

    Attributes:
        fetchers: those that have partitions.
    """

    def __init__(
        self,
        config: FetcherConfig,
        connect: Callable[[FetcherId], LeaderEndPoint],
        broker_epoch: Callable[[], int],
        advanced: Callable[[Partition], None],
        loop: asyncio.AbstractEventLoop,
        fetchers_per_leader: int = 1,
        quota: ReplicaQuota = UNBOUNDED,
    ) -> None:
        self.fetchers: dict[FetcherId, ReplicaFetcherLoop] = {}
        self._config = config
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._advanced = advanced
        self._loop = loop
        self._quota = quota
        self._per_leader = fetchers_per_leader
        self._owners: dict[PartitionKey, FetcherId] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<ReplicaFetcherManager fetchers={sorted(map(tuple, self.fetchers))} partitions={len(self._owners)}>"

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its present leader, in its present epoch."""
        key = (partition.topic.topic_id, partition.index)
        leader = partition.leader
        owner = FetcherId(leader, fetcher_number(partition.topic.name, partition.index, self._per_leader))
        if self._owners.get(key) != owner:
            self._leave(key)
        if leader == NO_LEADER or self._is_closed:
            return
        self._owners[key] = owner
        fetching = self.fetchers.get(owner)
        if fetching is None:
            fetching = self.fetchers[owner] = self._begin(owner)
        fetching.fetcher.add(partition)
        fetching.wake()

    def stop(self, partition: Partition) -> None:
        """Fetch a partition no longer: this broker leads it now, or its replica leaves."""
        self._leave((partition.topic.topic_id, partition.index))

    def resize(self, fetchers_per_leader: int) -> None:
        """Change the number of fetchers for each leader."""
        if fetchers_per_leader == self._per_leader:
            return
        self._per_leader = fetchers_per_leader
        followed = [state.partition for each in self.fetchers.values() for state in each.fetcher.partitions.values()]
        for partition in followed:
            self.follow(partition)
        self.close_idle()

    def _begin(self, owner: FetcherId) -> ReplicaFetcherLoop:
        fetcher = ReplicaFetcher(self._config, self._broker_epoch, self._advanced, self._quota)
        fetching = ReplicaFetcherLoop(fetcher, self._connect(owner), self._loop)
        # Not in this turn: a delta has many partitions, and the first request should name all of them.
        self._loop.call_soon(self._start, owner, fetching)
        return fetching

    def _start(self, owner: FetcherId, fetching: ReplicaFetcherLoop) -> None:
        if self.fetchers.get(owner) is fetching:
            fetching.start()

    def _leave(self, key: PartitionKey) -> None:
        owner = self._owners.pop(key, None)
        if owner is not None:
            self.fetchers[owner].fetcher.remove(key)

    def close_idle(self) -> None:
        """End the fetchers without partitions; called when a delta has been applied."""
        for owner, fetching in list(self.fetchers.items()):
            if not fetching.fetcher.partitions:
                del self.fetchers[owner]
                fetching.close()

    def close(self) -> None:
        """End all fetchers; answers that are under way are not used."""
        self._is_closed = True
        self._owners.clear()
        for fetching in self.fetchers.values():
            fetching.close()
        self.fetchers.clear()
