"""Several brokers in one loop, in virtual time, with a real controller: what the tests of replication between brokers share.

Each broker has a `ReplicaManager` over a simulated disk, and answers through the handlers of the API. A request between brokers takes a
millisecond each way and is coded as on the wire. The controller answers AlterPartition in a later turn, and its commits reach the brokers
a little later still, unless a test holds them back.
"""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

from barnabas.api import delete_records, fetch, list_offsets, produce
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.client.errors import ConnectionLost
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.image_difference import difference
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.primitives import Uuid
from barnabas.replication.alter_partition_manager import AlterPartitionManager
from barnabas.replication.directory_moves import DirectoryMoves
from barnabas.replication.fetch_session_cache import FetchSessionCache
from barnabas.replication.partition import Partition
from barnabas.replication.replica_changes import apply_delta
from barnabas.replication.replica_fetcher import FetcherConfig
from barnabas.replication.replica_fetcher_manager import ReplicaFetcherManager
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.replication.replica_quota import UNBOUNDED
from barnabas.replication.replicated_partitions import ReplicatedPartitions
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.node import EPOCH_MS
from barnabas.simulation.world_loop import WorldLoop
from barnabas.steps import run_on_the_spot, sleep, start
from barnabas.turns import new_budget
from tests.at_once import at_once
from tests.metadata.controller_harness import ControllerHarness
from tests.replication.following import FETCH_VERSION, batches_of, over_the_wire
from tests.replication.hosting import batch, cancel_waiting

LATENCY_S = 0.001
PUBLISH_S = 0.005
BACKOFF_MS = 100


class Exceeded:
    """A limit that lets nothing pass."""

    def is_throttled(self, topic: str, index: int) -> bool:
        return True

    def is_exceeded(self) -> bool:
        return True

    def record(self, size: int) -> None:
        """Count nothing."""


class Broker:
    """One broker; `start` begins a life of it, `kill` ends it."""

    def __init__(self, cluster: Cluster, node_id: int, rack: str | None) -> None:
        self.cluster, self.node_id, self.rack = cluster, node_id, rack
        self.disk = SimDisk()
        self.is_up = False
        self.lives = 0
        self.epoch = -1
        self.image = MetadataImage()
        self.replicas: ReplicaManager
        self.services: Any
        self.logs: Any

    def start(self) -> None:
        cluster = self.cluster
        self.is_up = True
        self.lives += 1
        self.image = MetadataImage()
        self.logs = self._opened_logs()
        previous = self.logs.broker_epoch
        self.epoch = cluster.register(self.node_id, self.lives, self.rack, previous)
        self.logs.broker_epoch = self.epoch
        self.replicas = ReplicaManager(
            self.logs, cluster.loop, cluster.now_ms, self.node_id, lambda name, image: cluster.config_of(name)
        )
        self.replicas.own_broker_epoch = lambda: self.epoch
        self.replicas.make_replicated = self.replicated
        self.services = SimpleNamespace(
            authorizer=None,
            node_id=self.node_id,
            replica_manager=self.replicas,
            fetch_sessions=FetchSessionCache(100, random.Random(self.lives)),
            image=lambda: self.image,
            now_ms=cluster.now_ms,
            loop=cluster.loop,
            config=SimpleNamespace(fetch_max_bytes=57_671_680, advertised_listeners=None),
        )
        if isinstance(self.logs, LogDirectories):
            replicas = self.replicas
            replicas.moves = DirectoryMoves(
                self.node_id,
                self.logs,
                UNBOUNDED,
                cluster.loop,
                replicas.hosted_partition,
                replicas.registration_of,
                replicas.notify_changed,
            )
        cluster.publish_to(self)
        if self.replicas.moves is not None:
            self.replicas.moves.resume()

    def _opened_logs(self) -> Any:
        now_ms = self.cluster.now_ms
        opened = [LogManager(self.disk, root, now_ms=now_ms) for root in self.cluster.log_dirs]
        for each in opened:
            at_once(each.open())
        if len(opened) == 1:
            return opened[0]
        logs = LogDirectories(opened)
        logs.ids = [Uuid(bytes([self.node_id, number]) * 8) for number, _ in enumerate(opened, start=1)]
        logs.check()
        return logs

    def replicated(self, replicas: ReplicaManager) -> ReplicatedPartitions:
        loop = self.cluster.loop
        fetchers = ReplicaFetcherManager(
            FetcherConfig(self.node_id, backoff_ms=BACKOFF_MS),
            lambda fetcher: LeaderOverNetwork(self, self.cluster.brokers[fetcher.leader]),
            lambda: self.epoch,
            replicas.follower_advanced,
            loop,
            replicas.fetchers_per_leader,
            replicas.follower_quota,
        )
        isr_changes = AlterPartitionManager(self.node_id, lambda: self.epoch, self.cluster, loop)
        return ReplicatedPartitions(fetchers, isr_changes, replicas.lag_time_max_ms, loop)

    def kill(self) -> None:
        self.is_up = False
        self.replicas.close()
        cancel_waiting(self.replicas)
        self.disk.kill()

    def stop(self) -> None:
        self.is_up = False
        self.replicas.close()
        at_once(self.logs.close())

    def context(self, api_key: int, version: int) -> RequestContext:
        connection = ConnectionInfo("c1", local_host="127.0.0.1", local_port=9092)
        return RequestContext(self.services, connection, api_key, version, 1, "test")

    def handle(self, handler: Any, api_key: int, version: int, request: Any) -> asyncio.Future[Any]:
        """Answer a request that arrives now, as the first in its turn; the future is done if no wait is needed."""
        new_budget()
        decoded = type(request).decode(bytearray(request.encode(version)), version)

        async def answer() -> Any:
            return await handler(self.context(api_key, version), decoded)

        return start(answer(), self.cluster.loop)

    def produce(self, *values: bytes, acks: int = -1, index: int = 0, timeout_ms: int = 60_000) -> Produced:
        made = messages.ProduceRequest
        data = made.PartitionProduceData(index=index, records=batch(*values))
        request = made(
            acks=acks, timeout_ms=timeout_ms, topic_data=[made.TopicProduceData(name="orders", partition_data=[data])]
        )
        return Produced(self.handle(produce.handle, 0, 9, request))

    def delete_before(self, offset: int, *, timeout_ms: int = 30_000) -> Deleted:
        made = messages.DeleteRecordsRequest
        asked = made.DeleteRecordsPartition(partition_index=0, offset=offset)
        request = made(timeout_ms=timeout_ms, topics=[made.DeleteRecordsTopic(name="orders", partitions=[asked])])
        return Deleted(self.handle(delete_records.handle, 21, 2, request))

    def fetch(self, offset: int = 0, *, rack: str = "", wait_ms: int = 0, version: int = 12) -> asyncio.Future[Any]:
        """Fetch as a consumer."""
        asked = FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic="orders", partitions=[asked])
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, session_epoch=-1, topics=[topic], rack_id=rack)
        return self.handle(fetch.handle, 1, version, request)

    def consume(self, offset: int = 0, *, rack: str = "", version: int = 12) -> FetchResponse.PartitionData:
        """Fetch as a consumer, without a wait; the records are as they arrive."""
        response = over_the_wire(self.fetch(offset, rack=rack, version=version).result(), version)
        data: FetchResponse.PartitionData = response.responses[0].partitions[0]
        return data

    def partition(self, index: int = 0) -> Partition:
        return self.replicas.partition("orders", index)

    def log(self, index: int = 0) -> PartitionLog:
        return self.partition(index).log


class Produced:
    """The answer to one Produce request of one partition."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future

    @property
    def outcome(self) -> str:
        """The name of the error, "NONE" for none, or "waiting"."""
        if not self.future.done():
            return "waiting"
        return ErrorCode(self.future.result().responses[0].partition_responses[0].error_code).name


class Deleted:
    """The answer to one DeleteRecords request of one partition."""

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future

    @property
    def outcome(self) -> str:
        """As `Produced.outcome`."""
        return ErrorCode(self._answer.error_code).name if self.future.done() else "waiting"

    @property
    def low_watermark(self) -> int:
        low_watermark: int = self._answer.low_watermark
        return low_watermark

    @property
    def _answer(self) -> Any:
        return self.future.result().topics[0].partitions[0]


class LeaderOverNetwork:
    """One broker's connection to another."""

    def __init__(self, follower: Broker, leader: Broker) -> None:
        self.follower, self.leader = follower, leader

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        response = over_the_wire(await self._ask(fetch.handle, 1, FETCH_VERSION, request))
        self.follower.cluster.answered(self.leader.node_id, self.follower.node_id, response)
        return response

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        response: ListOffsetsResponse = await self._ask(list_offsets.handle, 2, 11, request)
        return response

    async def _ask(self, handler: Any, api_key: int, version: int, request: Any) -> Any:
        lives = self.leader.lives
        await sleep(LATENCY_S, self.follower.cluster.loop)
        self._check(lives)
        self.follower.cluster.asked(self.follower.node_id, self.leader.node_id, request)
        response = await self.leader.handle(handler, api_key, version, request)
        await sleep(LATENCY_S, self.follower.cluster.loop)
        self._check(lives)
        return response

    def _check(self, lives: int) -> None:
        pair = {self.follower.node_id, self.leader.node_id}
        is_cut = pair in self.follower.cluster.cuts
        if is_cut or not self.leader.is_up or self.leader.lives != lives:
            raise ConnectionLost("lost the connection")


class Cluster:
    """Brokers 1, 2, … and the controller.

    Attributes:
        cuts: pairs of brokers that cannot reach each other.
        requests: those between brokers, as (follower, leader, request).
        proposals: how many AlterPartition requests have been sent.
        log_dirs: of each broker.
        lost_answers: how many of the next AlterPartition requests are carried out without an answer.
        is_behind: brokers that get no metadata.
    """

    def __init__(
        self, brokers: int = 3, racks: tuple[str, ...] = (), log_dirs: tuple[str, ...] = ("/data",), **config: Any
    ) -> None:
        self.loop = WorldLoop()
        self.log_dirs = log_dirs
        self.config = LogConfig(**config)
        self.harness = ControllerHarness(broker_session_timeout_ms=1 << 40)
        self.cuts: list[set[int]] = []
        self.requests: list[tuple[int, int, Any]] = []
        self.proposals = 0
        self.lost_answers = 0
        self.is_behind: set[int] = set()
        self.brokers: dict[int, Broker] = {}
        run_on_the_spot(self.harness.loader.add_late_publisher(lambda delta, image: self.publish()), None)
        for node_id in range(1, brokers + 1):
            self.brokers[node_id] = Broker(self, node_id, racks[node_id - 1] if racks else None)
            self.brokers[node_id].start()
        self.advance(600)

    def __getitem__(self, node_id: int) -> Broker:
        return self.brokers[node_id]

    def close(self) -> None:
        for broker in self.brokers.values():
            if broker.is_up:
                broker.kill()
        self.advance(1)
        assert not self.loop.errors, self.loop.errors
        self.loop.close()

    def now_ms(self) -> int:
        return EPOCH_MS + int(self.loop.time() * 1000)

    def advance(self, ms: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def config_of(self, name: str) -> LogConfig:
        return self.config

    def asked(self, follower: int, leader: int, request: Any) -> None:
        """A request between brokers has arrived."""
        self.requests.append((follower, leader, request))

    def answered(self, leader: int, follower: int, response: FetchResponse) -> None:
        """The answer to a Fetch has arrived; a subclass may write it down."""

    # The controller

    @property
    def image(self) -> MetadataImage:
        return self.harness.controller.image

    def now(self, index: int = 0) -> PartitionRegistration:
        return self.image.topics.by_name["orders"].partitions[index]

    def register(self, node_id: int, lives: int, rack: str | None, previous_epoch: int) -> int:
        """Register a broker; it stays fenced for a while, as one that reads the metadata first."""
        epoch = self.harness.register(
            node_id,
            unfence=False,
            incarnation_id=bytes([node_id, lives]) * 8,
            rack=rack,
            previous_broker_epoch=previous_epoch,
        )
        self.loop.call_later(0.5, self._unfence, node_id, epoch)
        return epoch

    def _unfence(self, node_id: int, epoch: int) -> None:
        broker = self.brokers[node_id]
        if broker.is_up and broker.epoch == epoch:
            self.harness.heartbeat(node_id, epoch)

    def fence(self, node_id: int) -> None:
        """Fence a broker, as the controller does at the end of its session."""
        self.harness.heartbeat(node_id, self.brokers[node_id].epoch, want_fence=True)

    def unfence(self, node_id: int) -> None:
        self._unfence(node_id, self.brokers[node_id].epoch)

    def publish(self) -> None:
        for broker in self.brokers.values():
            if broker.is_up:
                self.loop.call_later(PUBLISH_S, self.publish_to, broker, broker.lives)

    def publish_to(self, broker: Broker, lives: int | None = None) -> None:
        """Give a broker the metadata as of now."""
        if not broker.is_up or lives not in (None, broker.lives) or broker.node_id in self.is_behind:
            return
        delta, broker.image = difference(broker.image, self.image), self.image
        run_on_the_spot(apply_delta(broker.replicas, delta, self.image), None)

    def handle(self, api_key: int, version: int, request: Any) -> asyncio.Future[Any]:
        """Answer as the controller, for the AlterPartition managers."""

        async def answer() -> Any:
            await sleep(LATENCY_S, self.loop)
            self.proposals += 1
            decoded = type(request).decode(request.encode(version), version)
            settled = self.harness.later(ApiKey(api_key), decoded, version)
            await sleep(LATENCY_S, self.loop)
            if self.lost_answers:
                self.lost_answers -= 1
                raise ConnectionLost("lost the connection")
            return settled.result()

        return start(answer(), self.loop)

    def create_topic(self, *assignments: tuple[int, ...]) -> bytes:
        """Create the topic, by default with one partition on all brokers; returns its id."""
        made = messages.CreateTopicsRequest
        replicas = assignments or (tuple(self.brokers),)
        assigned = [
            made.CreatableReplicaAssignment(partition_index=index, broker_ids=list(each))
            for index, each in enumerate(replicas)
        ]
        topic = made.CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1, assignments=assigned)
        (answer,) = self.harness.send(ApiKey.CREATE_TOPICS, made(topics=[topic])).topics
        assert not answer.error_code, answer
        self.advance(PUBLISH_S * 1000 + 1)
        return self.image.topics.by_name["orders"].topic_id

    def delete_topic(self) -> None:
        request = messages.DeleteTopicsRequest(topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="orders")])
        self.harness.send(ApiKey.DELETE_TOPICS, request)

    def reassign(self, *replicas: int) -> None:
        """Let partition 0 move to these brokers."""
        made = messages.AlterPartitionReassignmentsRequest
        partition = made.ReassignablePartition(partition_index=0, replicas=list(replicas))
        topic = made.ReassignableTopic(name="orders", partitions=[partition])
        (answer,) = self.harness.send(ApiKey.ALTER_PARTITION_REASSIGNMENTS, made(topics=[topic])).responses
        assert not answer.partitions[0].error_code, answer

    def isolate(self, node_id: int) -> None:
        """Cut a broker off from the other brokers; it still reaches the controller."""
        self.cuts += [{node_id, other} for other in self.brokers if other != node_id]

    def heal(self) -> None:
        self.cuts.clear()

    # What must hold

    def isr(self, index: int = 0) -> tuple[int, ...]:
        return tuple(sorted(self.now(index).isr))

    def assert_identical(self, index: int = 0) -> None:
        """All replicas have the same bytes, and know that all of them are committed."""
        leader = self.brokers[self.now(index).leader].log(index)
        for node_id in self.now(index).replicas:
            log = self.brokers[node_id].log(index)
            assert batches_of(log) == batches_of(leader), f"broker {node_id}"
            assert log.high_watermark == leader.log_end_offset, f"broker {node_id}"
