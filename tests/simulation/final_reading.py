"""What clients see at the end of a run, when nothing disturbs the brokers any more: every log, commit and topic, for the checkers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.simulation.client import Asks
from tests.simulation.creator import topics
from tests.simulation.end_watcher import CONSUMER
from tests.simulation.history import History, Partition
from tests.simulation.transactions import (
    GROUP,
    READ_COMMITTED,
    Transactor,
    end_offset,
    find_coordinator,
    read_committed,
)
from tests.simulation.workload import NOT_YET, Committer, fetch

EARLIEST, LATEST = -2, -1


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
            await self._read_log(partition)
        for committer in committers:
            key = (committer.group, committer.partition)
            self._history.final_commits[key] = await self._committed(*key)
        self._history.final_topics = await topics(self._client)
        await self._read_transactions(transactors, transacted)

    async def read_recreated(self, partition: Partition) -> None:
        """Read the topic that was deleted and created again, if it exists now."""
        if self._history.final_topics is not None and partition.topic in self._history.final_topics:
            start, end = [await self._bound(partition, time) for time in (EARLIEST, LATEST)]
            self._history.final_recreated = await self._records(partition, start, end)

    async def _read_log(self, partition: Partition) -> None:
        start, end = [await self._bound(partition, time) for time in (EARLIEST, LATEST)]
        self._history.final_bounds[partition] = (start, end)
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
        if self._history.lost_unflushed_writes:
            return  # a partition may remember a transaction that its coordinator has lost, and wait for ever
        for transactor in transactors:
            self._history.final_transactional_offsets[transactor.name] = await transactor.take_over(self._client)
        for partition in transacted if transactors else ():
            self._history.final_bounds[partition] = (0, await self._bound(partition, LATEST))
            end, stable = [await end_offset(self._client, *partition, isolation) for isolation in (0, READ_COMMITTED)]
            if stable < end:
                self._history.held_back.append(f"{partition} is stable up to {stable} of {end}")
            self._history.final_committed[partition] = await read_committed(self._client, *partition)

    async def _bound(self, partition: Partition, time: int) -> int:
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition.index, timestamp=time)
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[wanted])],
        )
        while True:
            answer = await self._client.request(ApiKey.LIST_OFFSETS, 5, request, ListOffsetsResponse)
            result = answer.topics[0].partitions[0]
            if result.error_code not in NOT_YET:
                assert not result.error_code, ErrorCode(result.error_code).name
                return int(result.offset)
            await asyncio.sleep(0.1)

    async def _committed(self, group: str, partition: Partition) -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.index])
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
        while True:
            await find_coordinator(self._client, GROUP, group)
            answer = await self._client.request(
                ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse
            )
            result = answer.groups[0]
            error = result.error_code or result.topics[0].partitions[0].error_code
            if error not in NOT_YET:
                assert not error, ErrorCode(error).name
                return int(result.topics[0].partitions[0].committed_offset)
            await asyncio.sleep(0.1)
