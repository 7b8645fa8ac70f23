"""Brokers of one cluster in one loop of virtual time: real logs, coordinators and handlers; the test leads their metadata and their wire.

A partition has a replica on each broker, and its leader alone is in sync. When a partition moves, the next leader gets the rest of the log
first. Requests between brokers pass through their bytes; the test may do something before one arrives, or lose it or its answer.
"""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Callable, Collection, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, TypeVar

from barnabas.api import APIS
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.client.errors import ConnectionLost
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.coordinators import Coordinators
from barnabas.node.remote_coordinators import RemoteCoordinators
from barnabas.node.share_groups import ShareServices
from barnabas.protocol import messages
from barnabas.protocol.messages import (
    AllocateProducerIdsResponse,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from barnabas.protocol.partition_for import partition_for
from barnabas.protocol.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.replication.replica_changes import apply_delta
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.node import EPOCH_MS
from barnabas.simulation.world_loop import WorldLoop
from barnabas.steps import run_on_the_spot
from barnabas.transaction.producer_id_manager import ProducerIdManager
from tests.at_once import at_once
from tests.replication.hosting import topic_id

R = TypeVar("R")

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.coordinator.append.linger.ms": "0"}
COORDINATORS = {0: GROUP_METADATA, 1: TRANSACTION_STATE, 2: SHARE_GROUP_STATE}
PARTITIONS = 2
"""Of each internal topic."""
EVERYTHING = 1 << 30
STUCK_SECONDS = 600.0

LOST_REQUEST, LOST_ANSWER, HANGS = "request", "answer", "hangs"


class Broker:
    """One broker, without listeners and without a lifecycle."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        loop, now_ms = cluster.loop, cluster.now_ms
        self.node_id = node_id
        self.image = MetadataImage()
        self._cluster = cluster
        config = BrokerConfig.from_properties({**SETTINGS, "node.id": str(node_id)})
        self._logs = LogManager(SimDisk(), "/data", now_ms=now_ms)
        at_once(self._logs.open())
        settings = LogConfig(transaction_partition_verification_enable=True)
        self.replicas = ReplicaManager(self._logs, loop, now_ms, node_id, lambda name, image: settings)
        self.remote = RemoteCoordinators(node_id, lambda: self.image, self, loop)
        self.coordinators = Coordinators(
            config,
            self.replicas,
            image=lambda: self.image,
            resolver=ConfigResolver(config_schema(), node_id, SETTINGS, {}),
            loop=loop,
            now_ms=now_ms,
            random=random.Random(node_id),
            producer_ids=ProducerIdManager(loop, cluster.allocate),
            remote=self.remote,
        )
        self.services: Any = SimpleNamespace(
            authorizer=None,
            node_id=node_id,
            config=config,
            replica_manager=self.replicas,
            group_coordinator=self.coordinators.group,
            transaction_coordinator=self.coordinators.transaction,
            producer_ids=self.coordinators.producer_ids,
            image=lambda: self.image,
            now_ms=now_ms,
            loop=loop,
        )
        self.share = ShareServices(
            self.coordinators.share, self.coordinators.group_configs, lambda: self.services, self.remote
        )
        self.services.share = self.share

    def __repr__(self) -> str:
        return f"<Broker {self.node_id}>"

    async def request(self, broker_id: int, purpose: str, message: Any) -> Any:
        """Send a request to another broker."""
        assert broker_id != self.node_id, f"{self!r} sends {type(message).__name__} to itself"
        return await self._cluster.exchange(broker_id, purpose, message)

    def apply(self, *records: Any) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply()
        run_on_the_spot(apply_delta(self.replicas, delta, self.image), None)
        self.coordinators.apply_delta(delta)
        self.share.apply_delta(delta, self.image)

    async def handle(self, request: Any, version: int | None = None) -> Any:
        """Answer a request; both pass through their bytes."""
        version = request.MAX_VERSION if version is None else version
        route = APIS[request.API_KEY]
        module = importlib.import_module(f"barnabas.api.{route.module}")
        connection = ConnectionInfo("c", peer_host="127.0.0.9", local_host="127.0.0.1", local_port=9092)
        context = RequestContext(self.services, connection, request.API_KEY, version, 1, "client")
        read = type(request).decode(bytearray(request.encode(version)), version)
        response = module.handle(context, read)
        if asyncio.iscoroutine(response) or asyncio.isfuture(response):
            response = await response
        return getattr(messages, type(response).__name__).decode(response.encode(version), version)

    def close(self) -> None:
        self.share.close()
        self.coordinators.close()
        at_once(self._logs.close(clean=False))


class Cluster:
    """The brokers, and what the test does to them.

    Attributes:
        on_request: called with the number and the kind of each request between brokers before it arrives; may return `LOST_REQUEST`,
            `LOST_ANSWER`, or `HANGS` for a broker that is paused with the request.
        requests: what the brokers have sent each other: receiver, purpose, kind.
    """

    def __init__(self, brokers: int = 3) -> None:
        self.loop = WorldLoop()
        self.loop.ends_at = STUCK_SECONDS
        self.now_ms: Callable[[], int] = lambda: EPOCH_MS + int(self.loop.time() * 1000)
        self.on_request: Callable[[int, str], str | None] = lambda number, kind: None
        self.requests: list[tuple[int, str, str]] = []
        self.hung: list[asyncio.Future[None]] = []
        self._next_producer_id = 1000
        self.brokers = {node_id: Broker(self, node_id) for node_id in range(1, brokers + 1)}
        self.apply(
            FeatureLevelRecord(name="transaction.version", feature_level=2),
            FeatureLevelRecord(name="share.version", feature_level=1),
        )
        for number, topic in enumerate((GROUP_METADATA, TRANSACTION_STATE, SHARE_GROUP_STATE), 1):
            self.create(topic, number, *(1 + (number + index) % brokers for index in range(PARTITIONS)))

    def close(self) -> None:
        for hung in self.hung:
            hung.set_exception(ConnectionLost("the test ends"))
        for broker in self.brokers.values():
            broker.close()
        self.advance(1_000)
        assert not self.loop.errors, self.loop.errors
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return self.loop.run_until_complete(work)

    def advance(self, ms: int) -> None:
        self.run(asyncio.sleep(ms / 1000))

    def allocate(self) -> asyncio.Future[AllocateProducerIdsResponse]:
        """Give out a block of producer ids, as the controller does."""
        future: asyncio.Future[AllocateProducerIdsResponse] = self.loop.create_future()
        future.set_result(AllocateProducerIdsResponse(producer_id_start=self._next_producer_id, producer_id_len=1000))
        self._next_producer_id += 1000
        return future

    # Metadata

    def apply(self, *records: Any) -> None:
        for broker in self.brokers.values():
            broker.apply(*records)

    def create(self, name: str, number: int, *leaders: int, replicas: Collection[int] = ()) -> None:
        """Create a topic whose partitions have these leaders, and replicas on all brokers unless told otherwise."""
        id_ = topic_id(number)
        self.apply(
            TopicRecord(name=name, topic_id=id_),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=id_,
                    replicas=sorted(replicas or self.brokers),
                    isr=[leader],
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index, leader in enumerate(leaders)
            ),
        )

    def leader(self, topic: str, index: int) -> int:
        found = self.brokers[1].image.topics.partition(topic, index)
        assert found is not None
        return found.leader

    def move(self, topic: str, index: int) -> None:
        """Have the next broker lead a partition."""
        before = self.leader(topic, index)
        after = before % len(self.brokers) + 1
        self._copy(topic, index, before, after)
        id_ = self.brokers[1].image.topics.by_name[topic].topic_id
        self.apply(PartitionChangeRecord(topic_id=id_, partition_id=index, leader=after, isr=[after]))

    def _copy(self, topic: str, index: int, source: int, target: int) -> None:
        partition = self.brokers[source].replicas.partition(topic, index)
        log, copy = partition.log, self.brokers[target].replicas.partition(topic, index).log
        while copy.log_end_offset < log.log_end_offset:
            records = log.read(copy.log_end_offset, EVERYTHING, max_offset=log.log_end_offset).read()
            copy.append_as_follower(records, partition.leader_epoch)
        copy.high_watermark = copy.log_end_offset

    def coordinator(self, kind: int, key: str) -> tuple[str, int]:
        """Return the partition of a coordinator's topic that a key belongs to."""
        return COORDINATORS[kind], partition_for(key, PARTITIONS)

    def led_by(self, topic: str, index: int) -> Broker:
        return self.brokers[self.leader(topic, index)]

    def partitions(self) -> Iterator[tuple[str, int]]:
        for name, topic in self.brokers[1].image.topics.by_name.items():
            for index in topic.partitions:
                yield name, index

    # The wire

    async def exchange(self, broker_id: int, purpose: str, message: Any) -> Any:
        await asyncio.sleep(0.001)
        kind = type(message).__name__.removesuffix("Request")
        number = len(self.requests)
        self.requests.append((broker_id, purpose, kind))
        fate = self.on_request(number, kind)
        if fate == LOST_REQUEST:
            raise ConnectionLost("the test loses this request")
        if fate == HANGS:
            hung = self.loop.create_future()
            self.hung.append(hung)
            await hung
        response = await self.brokers[broker_id].handle(message)
        if fate == LOST_ANSWER:
            raise ConnectionLost("the test loses this answer")
        await asyncio.sleep(0.001)
        return response
