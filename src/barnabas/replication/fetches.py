"""The Fetch requests of one broker: each reads, and waits for more bytes.

    fetch ──► read ──► enough bytes, an error, no time to wait ──► respond
           ▲    └────► DelayedFetch ◄── wake: an append, a moved high watermark, other metadata
           └────────────────┘

A request waits for its session, or for each of its partitions if it has none.

Source: Kafka's `ReplicaManager.fetchMessages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterable
from math import ceil
from typing import TYPE_CHECKING

from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.fetch_reader import FetchParams, PartitionLookup, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.replication.partition import Partition
from barnabas.replication.purgatory import Purgatory
from barnabas.turns import next_turn, spend

if TYPE_CHECKING:
    from barnabas.replication.fetch_session import FetchSession

__all__ = ["Fetches"]


class Fetches:
    """Reads, and the requests that wait.

    Attributes:
        delayed: the waiting requests, by session or partition.
    """

    def __init__(self, lookup: PartitionLookup, loop: asyncio.AbstractEventLoop) -> None:
        self.delayed = Purgatory("fetch", loop)
        self._lookup = lookup
        self._loop = loop
        self._watchers = self.delayed.watchers

    def __repr__(self) -> str:
        return f"<Fetches waiting={self.delayed.watched}>"

    def wake(self, partition: Partition, amount: int, *, also_followers: bool = True) -> None:
        """Notify the fetches that wait on a partition, and its sessions, of `amount` new bytes (-1: another change).

        Args:
            also_followers: False only notes the change for the sessions of followers; the answer to the next fetch has it.
        """
        watchers = self._watchers
        if partition in watchers:
            self.delayed.notify(partition, amount)
        for observer in partition.observers or ():
            key = observer.note_change(also_followers=also_followers)
            if key in watchers:
                self.delayed.notify(key, amount)

    async def fetch(
        self, params: FetchParams, partitions: Collection[FetchPartition], session: FetchSession | None = None
    ) -> Reading:
        """Read, and wait for more bytes if the request allows it and nothing ends the wait.

        Args:
            partitions: to read; ignored for an incremental session.
            session: read the ready partitions of this session, and wait for any of its partitions. The cost is that of the changed
                partitions, whatever the size of the session.
        """
        deadline = self._loop.time() + params.max_wait_ms / 1000
        while True:
            ready = None if session is None else session.ready
            wanted = partitions if ready is None else list(ready)
            are_others_idle = session is not None and len(wanted) < len(session.partitions)
            reading = Reading(params, self._lookup, are_others_idle=are_others_idle)
            waiting: DelayedFetch | None = None
            is_turn_over = False
            try:
                for each in wanted:
                    if is_turn_over:
                        # The fetch must not miss changes from now on, in the partitions that are read already.
                        waiting = waiting or self._watch(params, _keys(reading, session), deadline)
                        await next_turn()
                    is_idle = reading.read(each)
                    is_turn_over = spend(reading.cost)
                    if ready is None:
                        if waiting is not None and each.partition is not None:
                            self.delayed.watch_also(waiting, each.partition)
                    elif is_idle:
                        # In the turn in which it is read: a change that comes later puts it back.
                        ready.pop(each, None)
                if reading.bytes_read >= params.min_bytes or reading.must_respond or self._loop.time() >= deadline:
                    return reading
                if waiting is None:
                    waiting = self._watch(params, _keys(reading, session), deadline)
                waiting.notified(reading.bytes_read)
                await waiting.future
            finally:
                if waiting is not None:
                    waiting.finish(None)
            params = params.read_again()

    def _watch(self, params: FetchParams, keys: Iterable[Hashable], deadline: float) -> DelayedFetch:
        operation = DelayedFetch(self._loop, params.min_bytes)
        # Rounded up: a timer that fires before the deadline would fire again and again.
        left_ms = max(0, ceil((deadline - self._loop.time()) * 1000))
        self.delayed.watch(operation, keys, left_ms)
        return operation


def _keys(reading: Reading, session: FetchSession | None) -> Iterable[Hashable]:
    """Return what a request waits for: its session, or each partition that it has read."""
    if session is not None:
        return (session,)
    return [wanted.partition for wanted, _ in reading.results if wanted.partition is not None]
