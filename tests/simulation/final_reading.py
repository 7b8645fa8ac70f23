"""What clients see at the end of a run, when nothing disturbs the brokers any more: every log, commit and topic, for the checkers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from barnabas.protocol.errors import ErrorCode
from tests.simulation.client import Asks
from tests.simulation.cluster_client import GROUP, NobodyToAsk
from tests.simulation.creator import topics
from tests.simulation.history import History, Partition
from tests.simulation.transactions import (
    READ_COMMITTED,
    Refused,
    Transactor,
    committed_offset,
    end_offset,
    find_coordinator,
    read_committed,
    start_offset,
)
from tests.simulation.workload import NOT_YET, Committer, fetch

ORPHAN_TRIES = 10
ORPHAN_SECONDS = 10.0
"""How long a transaction may wait that its coordinator has lost: its own timeout, and some looks of the leader."""
KNOWN_SECONDS = 5.0
"""How much later than another one a broker may know a topic."""


class FinalReading:
    """Reads through one client, and writes into the history."""

    def __init__(self, client: Asks, history: History) -> None:
        self._client, self._history = client, history

    async def read(
        self,
        partitions: Iterable[Partition],
        committers: Iterable[Committer],
        transactors: Sequence[Transactor],
        transacted: Iterable[Partition],
    ) -> None:
        """Read these logs and groups, the names of all topics, and what the transactors have committed."""
        for partition in partitions:
            await self.read_log(partition)
        for committer in committers:
            key = (committer.group, committer.partition)
            self._history.final_commits[key] = await self._committed(*key)
        self._history.final_topics = await topics(self._client)
        await self._read_transactions(transactors, transacted)

    async def read_recreated(self, partition: Partition) -> None:
        """Read the topic that was deleted and created again, if it exists now."""
        if self._history.final_topics is None or partition.topic not in self._history.final_topics:
            return
        deadline = asyncio.get_running_loop().time() + KNOWN_SECONDS
        while True:
            try:
                bounds = await self._bounds(partition)
            except NobodyToAsk:
                # One broker knows the topic of a last creation, and another one does not yet.
                if asyncio.get_running_loop().time() > deadline:
                    raise
            else:
                self._history.final_recreated = await self._records(partition, *bounds)
                return

    async def read_log(self, partition: Partition) -> None:
        """Read one log, and where it begins and ends."""
        start, end = self._history.final_bounds[partition] = await self._bounds(partition)
        self._history.final_logs[partition] = await self._records(partition, start, end)

    async def _records(self, partition: Partition, start: int, end: int) -> list[tuple[int, bytes]]:
        records: list[tuple[int, bytes]] = []
        offset = start
        while offset < end:
            error, found = await fetch(self._client, partition, offset)
            if error in NOT_YET:
                # Its leader has moved: the last move was asked for before the clients ended.
                await asyncio.sleep(0.1)
                continue
            if error or not found:
                self._history.errors.append(f"{partition} cannot be read at {offset} of {end}: error {error}")
                break
            records += found
            offset = found[-1][0] + 1
        # The last request of a client that has ended may be on its way still, and is appended behind the end.
        return [record for record in records if record[0] < end]

    async def _read_transactions(self, transactors: Sequence[Transactor], transacted: Iterable[Partition]) -> None:
        """Read what read_committed readers see after each transactional id was taken over, which aborts open transactions."""
        for transactor in transactors:
            self._history.final_transactional_offsets[transactor.name] = await self._take_over(transactor)
        for partition in transacted if transactors else ():
            self._history.final_bounds[partition] = (0, await end_offset(self._client, *partition))
            end, stable = await self._ends(partition)
            tries = ORPHAN_TRIES if self._history.lost_unflushed_writes else 0
            while stable < end and tries > 0:
                await asyncio.sleep(ORPHAN_SECONDS)
                (end, stable), tries = await self._ends(partition), tries - 1
            if stable < end:
                self._history.held_back.append(f"{partition} is stable up to {stable} of {end}")
            self._history.final_committed[partition] = await read_committed(self._client, *partition)

    async def _take_over(self, transactor: Transactor) -> int:
        for _ in range(ORPHAN_TRIES if self._history.lost_unflushed_writes else 0):
            try:
                return await transactor.take_over(self._client)
            except Refused as error:
                if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    raise
        return await transactor.take_over(self._client)

    async def _ends(self, partition: Partition) -> tuple[int, int]:
        """Return the high watermark and the last stable offset."""
        end, stable = [await end_offset(self._client, *partition, isolation) for isolation in (0, READ_COMMITTED)]
        return end, stable

    async def _bounds(self, partition: Partition) -> tuple[int, int]:
        return await start_offset(self._client, *partition), await end_offset(self._client, *partition)

    async def _committed(self, group: str, partition: Partition) -> int:
        await find_coordinator(self._client, GROUP, group)
        return await committed_offset(self._client, group, *partition, require_stable=False)
