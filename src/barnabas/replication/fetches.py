"""The Fetch requests of one broker: each is answered at once, or waits for more bytes.

    fetch ──► read ──► enough bytes, an error, no time to wait ──► answer
                └────► DelayedFetch ◄── wake: an append, a moved high watermark, other metadata

A request waits for its session, or for each of its partitions if it has none.

Source: Kafka's `ReplicaManager.fetchMessages`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import suppress
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from barnabas.protocol.errors import KafkaError
from barnabas.replication.delayed_fetch import DelayedFetch
from barnabas.replication.fetch_reader import (
    FetchParams,
    FetchPartition,
    FetchRead,
    PartitionLookup,
    read_in_slices,
    read_partitions,
)
from barnabas.replication.partition import OPENED_PER_TURN, Partition, opens_many
from barnabas.replication.purgatory import Purgatory
from barnabas.steps import in_pieces

if TYPE_CHECKING:
    from barnabas.replication.fetch_session import FetchSession

__all__ = ["Fetches"]

NO_READ = FetchRead([], 0, True, [])
"""What ends the wait of a fetch whose partitions are read in slices."""


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
        for wanted in partition.observers or ():
            session = wanted.session
            if session is not None:
                session.ready[wanted] = None
                if session in watchers and (also_followers or not session.is_privileged):
                    self.delayed.notify(session, amount)

    def fetch(
        self,
        params: FetchParams,
        partitions: Collection[FetchPartition],
        respond: Callable[[FetchRead], Any],
        session: FetchSession | None = None,
    ) -> Any:
        """Read, and wait for more bytes if the request allows it and nothing ends the wait.

        Args:
            partitions: to read; ignored for an incremental session.
            session: read the ready partitions of this session, and wait for any of its partitions. The cost is that of the changed
                partitions, whatever the size of the session.

        Returns:
            The result of `respond`, or a future of it.
        """
        read = (
            read_partitions(params, partitions, self._lookup)
            if session is None
            else self._read_session(params, session)
        )
        if read.bytes_read >= params.min_bytes or read.must_respond or params.max_wait_ms <= 0:
            return respond(read)
        if session is None:
            read_again = partial(read_partitions, params.read_again(), partitions, self._lookup)
        else:
            read_again = partial(self._read_session, params.read_again(), session)
        operation = DelayedFetch(self._loop, read_again, respond, params.min_bytes, read.bytes_read)
        keys: Sequence[Hashable] = (session,)
        if session is None:
            keys = [wanted.partition for wanted in partitions if wanted.partition is not None]
        self.delayed.watch(operation, keys, params.max_wait_ms)
        return operation.future

    async def fetch_in_slices(
        self, params: FetchParams, partitions: Collection[FetchPartition], session: FetchSession | None = None
    ) -> FetchRead:
        """As `fetch`, for many partitions: they are read in slices, again after each change until there is enough to respond."""
        deadline = self._loop.time() + params.max_wait_ms / 1000
        while True:
            keys: Sequence[Hashable] = await self._replicas_of(partitions) if session is None else (session,)
            # Before the read, so that a change between two slices counts.
            operation = DelayedFetch(self._loop, lambda: NO_READ, lambda _: None, params.min_bytes, 0)
            # Rounded up: a timer that fires before the deadline would fire again and again.
            left_ms = max(0, ceil((deadline - self._loop.time()) * 1000))
            self.delayed.watch(operation, keys, left_ms)
            try:
                if session is None:
                    read = await read_in_slices(params, list(partitions), self._lookup, are_others_idle=False)
                else:
                    are_others_idle = len(session.ready) < len(session.partitions)
                    read = await read_in_slices(
                        params,
                        list(session.ready),
                        self._lookup,
                        are_others_idle=are_others_idle,
                        ready=session.ready,
                    )
                if read.bytes_read >= params.min_bytes or read.must_respond or self._loop.time() >= deadline:
                    return read
                params = params.read_again()
                await operation.future
            finally:
                operation.finish(None)

    def opens_many(self, partitions: Collection[FetchPartition]) -> bool:
        """Return whether a read of these opens more logs than one turn of the loop has time for."""
        return len(partitions) > OPENED_PER_TURN and opens_many(map(self._replica, partitions))

    def _replica(self, wanted: FetchPartition) -> Partition | None:
        """Look up a replica; None if it is not here, which the read that follows reports."""
        if wanted.partition is None:
            with suppress(KafkaError):
                wanted.partition = self._lookup.partition_for_fetch(wanted)
        return wanted.partition

    async def _replicas_of(self, partitions: Collection[FetchPartition]) -> list[Partition]:
        """Look up the replicas that are here."""
        async for piece in in_pieces(list(partitions)):
            for wanted in piece:
                self._replica(wanted)
        return [wanted.partition for wanted in partitions if wanted.partition is not None]

    def _read_session(self, params: FetchParams, session: FetchSession) -> FetchRead:
        ready = session.ready
        are_others_idle = len(ready) < len(session.partitions)
        read = read_partitions(params, list(ready), self._lookup, are_others_idle=are_others_idle)
        for wanted in read.idle:
            ready.pop(wanted, None)
        return read
