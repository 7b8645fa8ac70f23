"""Fetches from one leader, again and again: the loop around a `ReplicaFetcher`.

    begin the new partitions ──► ListOffsets for those out of range ──► sync ──► Fetch ──► process its answer ──► again

- One request is under way at a time, as in Kafka.
- After a failed request the loop waits for replica.fetch.backoff.ms. A lost fetch session is no failure: a full request follows directly,
  unless that fails too.
- Logs whose topics have `barnabas.flush.before.ack` are synced before the request that reports their ends. The syncs run at the same time
  in other threads, and the request waits for all of them.
- No turn of the event loop is long. The loop yields after opening a few logs, and after processing 1 MiB of records or some partitions.

`wake` ends a wait for something to fetch, after `ReplicaFetcher.add`.

Source: Kafka's `AbstractFetcherThread.doWork`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from barnabas.pause import Pause
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import FetchResponse, ListOffsetsResponse
from barnabas.replication.leader_end_point import LeaderEndPoint
from barnabas.replication.partition_fetch_state import PartitionFetchState
from barnabas.replication.replica_fetcher import PartitionAnswer, ReplicaFetcher
from barnabas.steps import in_background, sleep
from barnabas.turns import LOG_OPENED, WRITE, pace

logger = logging.getLogger(__name__)

__all__ = ["ReplicaFetcherLoop"]

BYTES = 1_024
"""Bytes of a follower's records that are checked and written for the cost of one."""


class ReplicaFetcherLoop:
    """The loop of one fetcher.

    Args:
        loop: its time is the fetcher's, in seconds.
    """

    def __init__(self, fetcher: ReplicaFetcher, leader: LeaderEndPoint, loop: asyncio.AbstractEventLoop) -> None:
        self.fetcher = fetcher
        self._leader = leader
        self._loop = loop
        self._running: asyncio.Future[None] | None = None
        self._pause = Pause(loop)

    def __repr__(self) -> str:
        return f"<ReplicaFetcherLoop fetcher={self.fetcher!r} leader={self._leader!r}>"

    def start(self) -> None:
        """Begin to fetch, in the background."""
        assert self._running is None, f"{self} has been started"
        self._running = in_background(self.run(), self._loop)

    def close(self) -> None:
        """Stop; an answer that is under way is not used."""
        if self._running is not None:
            self._running.cancel()

    def wake(self) -> None:
        """Look for something to fetch now, or once the request that is under way has been answered."""
        self._pause.wake()

    async def run(self) -> None:
        """Fetch until cancelled."""
        was_used = True
        while True:
            await self._begin()
            await self._ask_for_offsets()
            await self._sync()
            request = self.fetcher.request(self._now_ms())
            if request is None:
                await self._wait()
                continue
            try:
                response = await self._leader.fetch(request)
            except KafkaError as error:
                logger.warning("fetching from the leader failed: %s", error.message)
                self.fetcher.request_failed()
                await self._back_off()
                continue
            could_be_used = await self._take(response)
            if not could_be_used and not was_used:
                await self._back_off()
            was_used = could_be_used

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def _begin(self) -> None:
        states = self.fetcher.states_to_begin(self._now_ms())
        if not states:
            return
        for state in states:
            await pace(LOG_OPENED)
            self.fetcher.begin(state, self._now_ms())

    async def _take(self, response: FetchResponse) -> bool:
        """Process an answer; return whether it could be used."""
        answers = self.fetcher.accept(response)
        if answers is None:
            return False
        for answer in answers:
            await pace(_cost(answer))
            self.fetcher.process(answer, self._now_ms())
        return True

    async def _sync(self) -> None:
        states = self.fetcher.states_to_sync(self._now_ms())
        if not states:
            return
        ends = []
        for state in states:
            await pace(WRITE)
            if state.awaits_sync:
                ends.append(end := self._loop.create_future())
                state.partition.log.flush_elsewhere(partial(_end, end))
        for end in ends:
            await end
        self.fetcher.synced(states, self._now_ms())

    async def _ask_for_offsets(self) -> None:
        states = self.fetcher.states_out_of_range(self._now_ms())
        if not states:
            return
        response = await self._offsets(states, is_end=True)
        if response is None:
            return
        others = self.fetcher.take_ends(states, response, self._now_ms())
        if others:
            response = await self._offsets(others, is_end=False)
            if response is not None:
                self.fetcher.take_starts(others, response, self._now_ms())

    async def _offsets(self, states: Sequence[PartitionFetchState], *, is_end: bool) -> ListOffsetsResponse | None:
        """Ask for the leader's ends or starts; None if there is no answer."""
        request = self.fetcher.ends_request(states) if is_end else self.fetcher.starts_request(states)
        try:
            return await self._leader.list_offsets(request)
        except KafkaError as error:
            logger.warning("asking for the leader's offsets failed: %s", error.message)
            self.fetcher.offsets_failed(states, self._now_ms())
            return None

    async def _back_off(self) -> None:
        await sleep(self.fetcher.config.backoff_ms / 1000, self._loop)

    async def _wait(self) -> None:
        """Wait until a delay ends, or for `wake`."""
        if self.fetcher.has_to_begin or self.fetcher.states_to_sync(self._now_ms()):
            return
        due_ms = self.fetcher.next_delay_end_ms()
        # One more, because the time in milliseconds is rounded down.
        await self._pause.or_woken(None if due_ms is None else max(0, due_ms - self._now_ms() + 1) / 1000)


def _end(future: asyncio.Future[None], error: BaseException | None) -> None:
    if not future.done():
        future.set_result(None)


def _cost(answer: PartitionAnswer) -> int:
    records = answer.data.records
    return WRITE + (len(records) // BYTES if isinstance(records, bytes | bytearray | memoryview) else 0)
