"""Clients that keep the broker busy and write down what they were told. Their state outlives a crash; their connections do not.

- `Producer`: idempotent, one partition each. It sends a batch whose answer does not come again with the same sequence, as every client
  does. If the broker has lost earlier unflushed records, and so no longer knows the producer, the producer asks for a new id.
- `Committer`: one member that commits a rising offset for a group, each commit after the answer to the last one.
- `Reader`: reads from the log start with long polls, over and over, and checks that nothing it saw changes or goes while the power is
  on. What it saw is compared with the end of the run too (`checkers.steady_reading`).
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.simulation.client import Asks, Connect
from tests.simulation.history import Batch, Commit, History, Partition

LOST = (OSError, TimeoutError, asyncio.IncompleteReadError)
# The broker does not know the records before these, or knows others: the producer id cannot be used any more.
IDENTITY_LOST = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
}
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    # Only several brokers answer with these.
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
}


class Producer:
    """Sends numbered values to one partition until stopped.

    Args:
        pause_seconds: the longest pause between two batches, beside the short ones that it makes now and then.
    """

    def __init__(
        self, name: str, partition: Partition, history: History, rng: random.Random, pause_seconds: float = 0.0
    ) -> None:
        self.name, self.partition, self.history, self.rng = name, partition, history, rng
        self.pause_seconds = pause_seconds
        self.identity: tuple[int, int] | None = None
        self.sequence = 0
        self.sent = 0
        self.pending: Batch | None = None
        self.throttle_ms = 0
        """How long it was told to wait by the last answer."""

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(self.name)
        while True:
            try:
                await self.step(client, loop)
            except LOST:
                await asyncio.sleep(self.rng.random() * 0.2)
            if self.rng.random() < 0.3:
                await asyncio.sleep(self.rng.random() * 0.1)
            if self.pause_seconds:
                await asyncio.sleep(self.rng.random() * self.pause_seconds)

    async def step(self, client: Asks, loop: Any) -> None:
        if self.identity is None:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            answer = await client.request(ApiKey.INIT_PRODUCER_ID, 4, request, InitProducerIdResponse)
            if answer.error_code:
                await asyncio.sleep(0.05)
                return
            self.identity, self.sequence, self.pending = (answer.producer_id, answer.producer_epoch), 0, None
        batch = self.pending or self.next_batch()
        error, base_offset = await self.send(client, batch, loop)
        if error in NOT_YET:
            await asyncio.sleep(0.05)
        elif error in IDENTITY_LOST:
            self.history.lost_identities.append(f"{self.name} was told {ErrorCode(error).name}")
            self.identity = None
        elif error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.acknowledged_at, batch.base_offset = loop.time(), base_offset
            # An answer that only says "known already" does not tell the offset, so nothing is promised about it.
            batch.survives = error == ErrorCode.NONE and base_offset >= 0
            self.sequence += len(batch.values)
            self.pending = None
            first, last = batch.values[0].split(b".")[0], batch.values[-1].split(b".")[0]
            where = f"{self.partition.topic}-{self.partition.index}"
            loop.note(f"{first.decode()} to {last.decode()} are at offset {base_offset} of {where}", is_detail=True)
        else:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")

    def next_batch(self) -> Batch:
        values = []
        for _ in range(self.rng.randrange(1, 6)):
            self.sent += 1
            values.append(f"{self.name}:{self.sent}:".encode() + b"." * self.rng.randrange(0, 200))
        self.pending = Batch(self.name, self.partition, values)
        self.history.batches.append(self.pending)
        return self.pending

    async def send(self, client: Asks, batch: Batch, loop: Any) -> tuple[int, int]:
        assert self.identity is not None
        records = build_batch(
            [(loop.now_ms(), None, value, []) for value in batch.values],
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            base_sequence=self.sequence,
        )
        topic = ProduceRequest.TopicProduceData(name=self.partition.topic)
        topic.partition_data = [ProduceRequest.PartitionProduceData(index=self.partition.index, records=bytes(records))]
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
        answer = await client.request(ApiKey.PRODUCE, 9, request, ProduceResponse)
        result = answer.responses[0].partition_responses[0]
        self.throttle_ms = answer.throttle_time_ms
        return result.error_code, result.base_offset


class Committer:
    """Commits 1, 2, 3 … for one group and partition.

    Args:
        pause_seconds: the longest pause between two commits.
    """

    def __init__(
        self, group: str, partition: Partition, history: History, rng: random.Random, pause_seconds: float = 0.2
    ) -> None:
        self.group, self.partition, self.history, self.rng = group, partition, history, rng
        self._pause_seconds = pause_seconds
        self.offset = 0

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(self.group)
        is_found = False
        while True:
            try:
                if not is_found:
                    await self.find(client)
                is_found = await self.step(client)
            except LOST:
                is_found = False
            await asyncio.sleep(self.rng.random() * self._pause_seconds)

    async def find(self, client: Asks) -> None:
        request = FindCoordinatorRequest(coordinator_keys=[self.group])
        await client.request(ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse)

    async def step(self, client: Asks) -> bool:
        """Commit the next offset; return whether that was acknowledged."""
        self.offset += 1
        commit = Commit(self.group, self.partition, self.offset)
        self.history.commits.append(commit)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=self.partition.topic)
        topic.partitions = [
            OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=self.partition.index, committed_offset=self.offset, committed_metadata="simulated"
            )
        ]
        request = OffsetCommitRequest(group_id=self.group, topics=[topic])
        answer = await client.request(ApiKey.OFFSET_COMMIT, 8, request, OffsetCommitResponse)
        error = answer.topics[0].partitions[0].error_code
        if error == ErrorCode.NONE:
            commit.acknowledged = commit.survives = True
            asyncio.get_running_loop().note(f"{self.group} has committed {self.offset}", is_detail=True)  # type: ignore[attr-defined]
        elif error not in NOT_YET:
            raise AssertionError(f"{self.group} was answered {ErrorCode(error).name}")
        return commit.acknowledged


class Reader:
    """Reads one partition with long polls; what it saw must not change while the power is on."""

    def __init__(self, partition: Partition, history: History) -> None:
        self.partition, self.history = partition, history

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("reader")
        seen: dict[int, bytes] = {}
        offset = 0
        while True:
            try:
                error, records = await fetch(client, self.partition, offset, wait_ms=500)
            except LOST:
                await asyncio.sleep(0.1)
                continue
            if error == ErrorCode.OFFSET_OUT_OF_RANGE:
                # Who deletes records has said so before. Otherwise the records before this offset, which it has read, are lost.
                deleted = self.history.trims_asked.get(self.partition, 0)
                if offset >= deleted:
                    self.history.errors.append(f"{self.partition} offset {offset} went out of range under a reader")
                offset = offset + 1 if offset < deleted else 0
            if error == ErrorCode.OFFSET_OUT_OF_RANGE or error in NOT_YET:
                await asyncio.sleep(0.1)
                continue
            if error:
                raise AssertionError(f"a reader was answered {ErrorCode(error).name}")
            self.history.seen.setdefault(self.partition, {}).update(records)
            for at, value in records:
                if seen.setdefault(at, value) != value:
                    self.history.errors.append(f"{self.partition} offset {at} changed under a reader")
                offset = max(offset, at + 1)
            if not records and len(seen) > 50:
                offset, seen = 0, {}


async def fetch(
    client: Asks, partition: Partition, offset: int, wait_ms: int = 0
) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the error code of one Fetch of one partition, and the records from `offset` on."""
    result = await fetch_batches(client, partition, offset, wait_ms=wait_ms, max_bytes=1 << 16)
    found = []
    data = memoryview(result.records or b"")
    for at, header in iter_batches(data):
        if not header.is_control:
            found += [
                (r.offset, r.value or b"") for r in iter_records(data[at : at + header.size]) if r.offset >= offset
            ]
    return result.error_code, found


async def fetch_batches(
    client: Asks, partition: Partition, offset: int, *, wait_ms: int = 0, max_bytes: int, isolation_level: int = 0
) -> Any:
    """Return what one Fetch answers of one partition.

    Args:
        max_bytes: of the partition's batches, but for the first.
    """
    wanted = FetchRequest.FetchPartition(
        partition=partition.index, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        topics=[FetchRequest.FetchTopic(topic=partition.topic, partitions=[wanted])],
    )
    answer = await client.request(ApiKey.FETCH, 11, request, FetchResponse)
    return answer.responses[0].partitions[0]
