"""An idempotent producer that writes to many new partitions at once, several requests in flight, with keys and compression.

As a real one it goes on while earlier requests are unanswered, and looks now and then who leads: when a leader moves, the next batch goes
to the new leader before the former one has answered. So a broker sees gaps, and must reject them with OUT_OF_ORDER_SEQUENCE_NUMBER; the
producer then sends again, in order, from the first batch that was not acknowledged.

It has two connections to each broker, so that one request overtakes another one: then there is a gap without a fault, too.

Only the first batch of a partition goes alone: a log that has nothing of the producer takes any sequence, here as in Apache Kafka.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import InitProducerIdRequest, InitProducerIdResponse, ProduceRequest, ProduceResponse
from barnabas.records.builder import RecordFields, build_batch
from barnabas.records.compression import Compression
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.creator import CREATED, create_topic
from tests.simulation.history import Batch, History, Partition
from tests.simulation.pipeline import Pipeline
from tests.simulation.workload import IDENTITY_LOST, LOST, NOT_YET

WIDE_TOPIC = "wide"
IN_FLIGHT = 4
"""Requests of a connection without an answer. Also how far a partition's batches go from the first without an answer on: a broker remembers
five, and could not tell a copy of an older one from a gap."""
WIDTH = 4
"""Partitions of a round at most."""
CONNECTIONS = 2
"""To each broker."""
REFRESH_RATE = 0.2
"""Before how many batches it looks who leads."""
LONGEST_PAUSE_SECONDS = 0.3
TIMEOUT_SECONDS = 7.0


class Pending(NamedTuple):
    """A batch that is not acknowledged: the how manyth of its partition, its first sequence, and itself."""

    number: int
    sequence: int
    batch: Batch


class Lane:
    """What goes to one partition.

    Attributes:
        pending: the batches that are not acknowledged, in order.
        made: how many batches there were.
        sent: how many of them are sent.
        in_flight: how many requests with a batch of this lane have no answer.
        has_begun: a batch was acknowledged.
        is_broken: a batch has failed. When nothing is in flight any more, all are sent again.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.pending: list[Pending] = []
        self.made = self.sent = self.in_flight = self.sequence = 0
        self.is_broken = self.has_begun = False

    def may_send(self) -> bool:
        if self.is_broken and not self.in_flight:
            self.is_broken, self.sent = False, 0
        most = IN_FLIGHT if self.has_begun else 1
        is_near = not self.pending or self.made - self.pending[0].number < most
        return not self.is_broken and (self.sent < len(self.pending) or is_near)

    def add(self, batch: Batch) -> None:
        self.pending.append(Pending(self.made, self.sequence, batch))
        self.made += 1
        self.sequence += len(batch.values)

    def acknowledged(self, batch: Batch) -> None:
        self.has_begun = True
        places = [place for place, each in enumerate(self.pending) if each.batch is batch]
        for place in places:
            del self.pending[place]
            self.sent -= place < self.sent


class WideProducer:
    """Creates its topic, and writes to all of its partitions until stopped."""

    def __init__(self, name: str, partitions: int, replicas: int, history: History, rng: random.Random) -> None:
        self.name, self._count, self._replicas = name, partitions, replicas
        self._history, self._rng = history, rng
        self._identity: tuple[int, int] | None = None
        self._lanes: list[Lane] = []
        self._pipelines: dict[tuple[Address, int], Pipeline] = {}
        self._answers: dict[asyncio.Task[None], None] = {}
        self._written = 0

    @property
    def partitions(self) -> list[Partition]:
        return [Partition(WIDE_TOPIC, index) for index in range(self._count)]

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        is_created = False
        while True:
            try:
                is_created = (
                    is_created or await create_topic(client, WIDE_TOPIC, self._count, self._replicas) in CREATED
                )
                if is_created and self._identity is None:
                    await self._initialise(client)
                if self._identity is not None:
                    await self._round(client, loop)
            except LOST:
                await asyncio.sleep(self._rng.random() * 0.2)
            for answer in [each for each in self._answers if each.done()]:
                del self._answers[answer]
                answer.result()
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    async def _initialise(self, client: ClusterClient) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = await client.request(ApiKey.INIT_PRODUCER_ID, 4, request, InitProducerIdResponse)
        if not answer.error_code:
            self._identity = answer.producer_id, answer.producer_epoch
            self._lanes = [Lane(partition) for partition in self.partitions]

    async def _round(self, client: ClusterClient, loop: Any) -> None:
        """Send a batch to some partitions: one request to each broker that leads any of them."""
        lanes = [lane for lane in self._rng.sample(self._lanes, min(WIDTH, len(self._lanes))) if lane.may_send()]
        by_leader: dict[Address, list[Lane]] = {}
        for lane in lanes:
            if self._rng.random() < REFRESH_RATE:
                client.forget(lane.partition)
            address, _ = await client.find(lane.partition)
            by_leader.setdefault(address, []).append(lane)
        for address in by_leader:
            for each in range(CONNECTIONS):
                if (address, each) not in self._pipelines:
                    self._pipelines[address, each] = await Pipeline.open(address, self.name)
        for _ in range(self._rng.choice((1, 1, 2, 3))):
            for address, led in by_leader.items():
                pipeline = self._pipelines.get((address, self._rng.randrange(CONNECTIONS)))
                sendable = [lane for lane in led if lane.may_send()]
                if pipeline is not None and pipeline.in_flight < IN_FLIGHT and sendable and self._identity is not None:
                    self._send(client, pipeline, sendable, loop)

    def _send(self, client: ClusterClient, pipeline: Pipeline, lanes: list[Lane], loop: Any) -> None:
        topic = ProduceRequest.TopicProduceData(name=WIDE_TOPIC)
        sent = []
        for lane in lanes:
            if lane.sent == len(lane.pending):
                lane.add(self._next_batch(lane.partition))
            _, sequence, batch = lane.pending[lane.sent]
            sent.append((lane, batch, lane.sent == 0))
            lane.sent += 1
            lane.in_flight += 1
            records = self._records(batch, sequence, loop)
            topic.partition_data.append(
                ProduceRequest.PartitionProduceData(index=lane.partition.index, records=records)
            )
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[topic])
        answer = pipeline.send(ApiKey.PRODUCE, 9, request, ProduceResponse)
        self._answers[asyncio.ensure_future(self._settle(client, pipeline, answer, sent, loop))] = None

    def _next_batch(self, partition: Partition) -> Batch:
        values = []
        for _ in range(self._rng.randrange(1, 8)):
            self._written += 1
            values.append(f"{self.name}:{self._written}:".encode() + b"." * self._rng.randrange(0, 100))
        batch = Batch(self.name, partition, values)
        self._history.batches.append(batch)
        return batch

    def _records(self, batch: Batch, sequence: int, loop: Any) -> bytes:
        assert self._identity is not None
        now_ms = loop.now_ms()
        # The same bytes whenever it is sent: its length decides.
        compression = list(Compression)[len(batch.values[0]) % len(Compression)]
        fields: list[RecordFields] = [(now_ms, value.split(b":")[1][-1:], value, []) for value in batch.values]
        producer_id, epoch = self._identity
        return bytes(
            build_batch(
                fields, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, compression=compression
            )
        )

    async def _settle(
        self,
        client: ClusterClient,
        pipeline: Pipeline,
        answer: asyncio.Future[Any],
        sent: list[tuple[Lane, Batch, bool]],
        loop: Any,
    ) -> None:
        """Wait for the answer to one request, and do what it says."""
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                found = (await answer).responses[0].partition_responses
        except LOST:
            pipeline.drop()
            for each in [each for each, known in self._pipelines.items() if known is pipeline]:
                del self._pipelines[each]
            for lane, _, _ in sent:
                lane.in_flight -= 1
                lane.is_broken = True
                client.forget(lane.partition)
            return
        results = {each.index: each for each in found}
        for lane, batch, is_first in sent:
            lane.in_flight -= 1
            result = results[lane.partition.index]
            self._judge(client, lane, batch, result.error_code, result.base_offset, is_first=is_first, loop=loop)

    def _judge(
        self, client: ClusterClient, lane: Lane, batch: Batch, error: int, offset: int, *, is_first: bool, loop: Any
    ) -> None:
        if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.acknowledged_at, batch.base_offset = loop.time(), offset
            batch.survives = error == ErrorCode.NONE and offset >= 0
            lane.acknowledged(batch)
        elif error in NOT_YET or (error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_first):
            lane.is_broken = True
            client.forget(lane.partition)
        elif error in IDENTITY_LOST:
            self._history.lost_identities.append(f"{self.name} was told {ErrorCode(error).name} for {lane.partition}")
            self._identity = None
        else:
            raise AssertionError(f"{self.name} was answered {ErrorCode(error).name}")
