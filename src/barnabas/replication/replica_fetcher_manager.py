"""The fetchers of a broker: one for each leader that it follows.

    follow(partition) ──► the fetcher of its leader ──► ReplicaFetcherLoop ──► LeaderEndPoint of that broker
                     └──► leaves the fetcher of the leader before

- A partition is in one fetcher, by its leader. One without a leader is in none.
- A fetcher ends with its last partition. The next partition of that leader begins another one.
- A leader's address may change while it is followed; the `LeaderEndPoint` sees to it. A lost connection delays a fetcher by
  replica.fetch.backoff.ms.

Left out: num.replica.fetchers. There is one fetcher for each leader, because all of them would share one processor anyway.

Source: Kafka's `ReplicaFetcherManager`, `AbstractFetcherManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.replication.leader_end_point import LeaderEndPoint
from barnabas.replication.partition import Partition
from barnabas.replication.partition_fetch_state import PartitionKey
from barnabas.replication.replica_fetcher import FetcherConfig, ReplicaFetcher
from barnabas.replication.replica_fetcher_loop import ReplicaFetcherLoop

__all__ = ["ReplicaFetcherManager"]

NO_LEADER = -1


class ReplicaFetcherManager:
    """The followed partitions.

    Args:
        connect: returns the end point of a broker; it fails when it is used, not here.
        broker_epoch, advanced: as `ReplicaFetcher`.

    Attributes:
        fetchers: by the leader's node id.
    """

    def __init__(
        self,
        config: FetcherConfig,
        connect: Callable[[int], LeaderEndPoint],
        broker_epoch: Callable[[], int],
        advanced: Callable[[Partition], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.fetchers: dict[int, ReplicaFetcherLoop] = {}
        self._config = config
        self._connect = connect
        self._broker_epoch = broker_epoch
        self._advanced = advanced
        self._loop = loop
        self._leaders: dict[PartitionKey, int] = {}
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<ReplicaFetcherManager leaders={sorted(self.fetchers)} partitions={len(self._leaders)}>"

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its present leader, in its present epoch."""
        key = (partition.topic.topic_id, partition.index)
        leader = partition.leader
        if self._leaders.get(key, NO_LEADER) != leader:
            self._leave(key)
        if leader == NO_LEADER or self._is_closed:
            return
        self._leaders[key] = leader
        fetching = self.fetchers.get(leader)
        if fetching is None:
            fetching = self.fetchers[leader] = self._begin(leader)
        fetching.fetcher.add(partition)
        fetching.wake()

    def stop(self, partition: Partition) -> None:
        """Fetch a partition no longer: this broker leads it now, or its replica leaves."""
        self._leave((partition.topic.topic_id, partition.index))

    def _begin(self, leader: int) -> ReplicaFetcherLoop:
        fetcher = ReplicaFetcher(self._config, self._broker_epoch, self._advanced)
        fetching = ReplicaFetcherLoop(fetcher, self._connect(leader), self._loop)
        # Not in this turn: a delta has many partitions, and the first request should name all of them.
        self._loop.call_soon(self._start, leader, fetching)
        return fetching

    def _start(self, leader: int, fetching: ReplicaFetcherLoop) -> None:
        if self.fetchers.get(leader) is fetching:
            fetching.start()

    def _leave(self, key: PartitionKey) -> None:
        leader = self._leaders.pop(key, NO_LEADER)
        if leader != NO_LEADER:
            self.fetchers[leader].fetcher.remove(key)

    def close_idle(self) -> None:
        """End the fetchers without partitions; called when a delta has been applied."""
        for leader, fetching in list(self.fetchers.items()):
            if not fetching.fetcher.partitions:
                del self.fetchers[leader]
                fetching.close()

    def close(self) -> None:
        """End all fetchers; answers that are under way are not used."""
        self._is_closed = True
        self._leaders.clear()
        for fetching in self.fetchers.values():
            fetching.close()
        self.fetchers.clear()
