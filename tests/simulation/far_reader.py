"""A consumer in a rack: leaders send it to a replica in that rack (KIP-392). It also asks for offsets by time.

What a follower shows it is judged with what all readers see: it is committed, so it is in the log at the end. A follower may be behind, and
answer that the offset is out of its range; then the reader goes back to the leader, as consumers do.

An offset by time is judged by the timestamps that this reader has seen at any time (`checkers.offsets_by_time`), and only if the broker led
the partition in its newest epoch, and knew it, before and after the request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History, Partition, TimeLookup
from tests.simulation.share_history import Leader
from tests.simulation.workload import LOST, NOT_YET

LONGEST_PAUSE_SECONDS = 0.4
LOOKUP_RATE, RETURN_RATE = 0.4, 0.1
RACKS = ("north", "south")
SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
CONSUMER = -1


class FarReader:
    """Reads and asks until stopped.

    Args:
        brokers: the addresses, by id.
        leader_of: the address and the epoch of a partition's leader; None while nobody leads, or the leader does not know it.
        committed: the highest high watermark that any broker knows; None while one of them is down, which may have known more.
    """

    name = "far reader"

    def __init__(
        self,
        partitions: Sequence[Partition],
        brokers: Mapping[int, Address],
        history: History,
        rng: random.Random,
        leader_of: Callable[[Partition], Leader | None],
        committed: Callable[[Partition], int | None],
    ) -> None:
        self._partitions, self._brokers, self._history, self._rng = partitions, brokers, history, rng
        self._leader_of, self._committed = leader_of, committed
        self._replicas: dict[Partition, Address] = {}
        self._offsets: dict[Partition, int] = {}

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            partition = self._rng.choice(self._partitions)
            try:
                await self._read(client, partition)
                if self._rng.random() < LOOKUP_RATE:
                    await self._look_up(client, partition)
            except LOST:
                self._replicas.pop(partition, None)
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    async def _read(self, client: ClusterClient, partition: Partition) -> None:
        replica, offset = self._replicas.get(partition), self._offsets.get(partition, 0)
        wanted = FetchRequest.FetchPartition(
            partition=partition.index, fetch_offset=offset, partition_max_bytes=1 << 14, current_leader_epoch=-1
        )
        request = FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=1 << 20,
            rack_id=RACKS[-1],
            topics=[FetchRequest.FetchTopic(topic=partition.topic, partitions=[wanted])],
        )
        if replica is None:
            answer = await client.request(ApiKey.FETCH, 11, request, FetchResponse)
        else:
            answer = await client.request_at(replica, ApiKey.FETCH, 11, request, FetchResponse)
        found = answer.responses[0].partitions[0]
        if found.error_code:
            self._refused(partition, found.error_code, is_far=replica is not None)
        elif found.preferred_read_replica >= 0:
            self._replicas[partition] = self._brokers[found.preferred_read_replica]
        else:
            has_shown = self._note(partition, memoryview(found.records or b""), offset)
            if replica is not None:
                self._history.far_reads += 1
                if has_shown:
                    # A new leader's high watermark may be lower than what its predecessor has shown, until its followers fetch.
                    self._check_is_committed(partition)
        if self._rng.random() < RETURN_RATE:
            self._replicas.pop(partition, None)

    def _refused(self, partition: Partition, error: int, *, is_far: bool) -> None:
        self._replicas.pop(partition, None)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if not is_far:  # Who deletes records has been there; `Reader` judges whether somebody has.
                self._offsets[partition] = self._history.trims_asked.get(partition, 0)
        elif error not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    def _check_is_committed(self, partition: Partition) -> None:
        """Write down whether a follower has shown what is not committed anywhere."""
        end, committed = self._offsets.get(partition, 0), self._committed(partition)
        if committed is not None and end > committed:
            where = f"{partition.topic}-{partition.index}"
            self._history.shown_early.append(
                f"a follower of {where} showed offset {end - 1}; committed below {committed}"
            )

    def _note(self, partition: Partition, data: memoryview, offset: int) -> bool:
        """Write down what one answer holds, from the offset on that was asked for; return whether it holds records."""
        seen = self._history.seen.setdefault(partition, {})
        stamps = self._history.stamps.setdefault(partition, {})
        last = None
        for at, header in iter_batches(data):
            for record in iter_records(data[at : at + header.size]):
                if record.offset < offset:
                    continue
                last, value = record.offset, record.value or b""
                if seen.setdefault(last, value) != value:
                    self._history.errors.append(f"{partition} offset {last} is another record on another replica")
                stamps[last] = record.timestamp
        if last is not None:
            self._offsets[partition] = last + 1
        elif self._rng.random() < RETURN_RATE:
            self._offsets[partition] = self._history.trims_asked.get(partition, 0)
        return last is not None

    async def _look_up(self, client: ClusterClient, partition: Partition) -> None:
        stamps = self._history.stamps.get(partition)
        if not stamps:
            return
        timestamp = self._rng.choice(list(stamps.values())) + self._rng.choice((-1, 0, 0, 1))
        wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=CONSUMER,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[wanted])],
        )
        known_end, before = max(stamps) + 1, self._leader_of(partition)
        answer = await client.request(ApiKey.LIST_OFFSETS, 5, request, ListOffsetsResponse)
        found = answer.topics[0].partitions[0]
        is_led = before is not None and before == self._leader_of(partition) and client.last_asked == before[0]
        if found.error_code and found.error_code not in NOT_YET:
            raise AssertionError(f"{self.name} was answered {ErrorCode(found.error_code).name}")
        if not found.error_code and is_led:
            self._history.lookups.append(TimeLookup(partition, timestamp, known_end, found.offset, found.timestamp))
