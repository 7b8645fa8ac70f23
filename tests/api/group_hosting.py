"""A broker's groups over real logs: what the tests of the group APIs share. Requests and responses pass through their bytes."""

from __future__ import annotations

import asyncio
import importlib
import random
from types import SimpleNamespace
from typing import Any

from barnabas.api import APIS
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.coordinator.coordinator_log import ReplicaCoordinatorLog
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.protocol import messages
from barnabas.protocol.messages import AllocateProducerIdsResponse, JoinGroupRequest, SyncGroupRequest
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.steps import step
from barnabas.transaction.producer_id_manager import ProducerIdManager
from tests.replication.hosting import Hosting

PARTITIONS = 2


class GroupHosting:
    """The services that group APIs use, with `__consumer_offsets` in place unless told otherwise."""

    def __init__(self, hosting: Hosting, *, create: bool = True) -> None:
        self.hosting = hosting
        self.loop = hosting.loop
        self.next_producer_id = 4000
        self.asked: list[Any] = []
        services = hosting.services
        services.config = SimpleNamespace(
            advertised_listeners=None,
            is_alone=True,
            request_timeout_ms=30_000,
            int_value={
                "offsets.topic.num.partitions": PARTITIONS,
                "offsets.topic.replication.factor": 3,
                "offsets.topic.segment.bytes": 104_857_600,
                "transaction.state.log.num.partitions": 2,
                "transaction.state.log.replication.factor": 3,
                "transaction.state.log.min.isr": 2,
                "transaction.state.log.segment.bytes": 104_857_600,
            }.__getitem__,
        )
        config = GroupCoordinatorConfig(offsets_topic_num_partitions=PARTITIONS, group_initial_rebalance_delay_ms=20)
        self.coordinator = GroupCoordinator(
            config,
            ReplicaCoordinatorLog(hosting.replicas, GROUP_METADATA),
            shard_factory(config, now_ms=hosting.now_ms, rng=random.Random(5)),
            loop=self.loop,
            now_ms=hosting.now_ms,
        )
        services.group_coordinator = self.coordinator
        services.producer_ids = ProducerIdManager(self.loop, self._allocate)
        services.creating_topics = {}
        services.missing_topics = {}
        services.share = SimpleNamespace(coordinator=SimpleNamespace(is_in_use=False))
        services.controller = SimpleNamespace(handle=self._create_topic)
        if create:
            self.create_offsets_topic()

    def create_offsets_topic(self) -> None:
        self.hosting.create_topic(GROUP_METADATA, PARTITIONS)
        for partition in range(PARTITIONS):
            self.coordinator.on_elected(partition, 0)
        self.hosting.spin()

    def _allocate(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        future.set_result(AllocateProducerIdsResponse(producer_id_start=self.next_producer_id, producer_id_len=1000))
        self.next_producer_id += 1000
        return future

    def _create_topic(self, api_key: int, version: int, request: Any, **_: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()
        self.asked.append((request, future))
        return future

    def ask(self, api_key: int, request: Any, version: int) -> Any:
        """Send a request; its response, or a future of it while it waits."""
        route = APIS[api_key]
        module = importlib.import_module(f"barnabas.api.{route.module}")
        connection = ConnectionInfo("c", peer_host="127.0.0.9", local_host="127.0.0.1", local_port=9092)
        context = RequestContext(self.hosting.services, connection, api_key, version, 1, "client")
        response = module.handle(context, type(request).decode(request.encode(version), version))
        if asyncio.iscoroutine(response):
            response = step(response, self.loop)
        if not asyncio.isfuture(response):
            return self.through_bytes(response, version)
        self.hosting.spin()
        if response.done():
            return self.through_bytes(response.result(), version)
        return response

    def through_bytes(self, response: Any, version: int) -> Any:
        return getattr(messages, type(response).__name__).decode(response.encode(version), version)

    def stable_member(self, group_id: str = "g", protocol_type: str = "consumer") -> str:
        """Have one member in the group; returns its id. The generation is 1."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1s\0\0\0\0")
        request = JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type=protocol_type,
            protocols=[protocol],
        )
        future = self.ask(11, request, 3)
        self.hosting.advance(20)
        member_id: str = future.result().member_id
        part = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"part")
        self.ask(14, SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id, assignments=[part]), 3)
        return member_id
