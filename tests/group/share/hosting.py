"""One broker's share groups in virtual time, with a share coordinator that waits or fails as a test wants."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from barnabas.config.config_table import config_schema
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.group.sender import Sender
from barnabas.group.share.group import ShareGroup
from barnabas.group.share.requests import ShareGroupService
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareGroupHeartbeatRequest
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from barnabas.steps import start
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.shards import shard_of
from tests.coordinator.virtual_loop import VirtualLoop
from tests.group.cluster_metadata import ClusterMetadata

INTERVAL_MS = 1_000
SESSION_MS = 45_000


class FakePersister:
    """A share coordinator that waits or fails as a test wants."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.begun: list[tuple[str, bytes, int, int, int]] = []
        self.deleted: list[tuple[bytes, int]] = []
        self.described: list[SharePartitionKey] = []
        self.fails: set[int] = set()
        self.bug: Exception | None = None
        self.waits = False
        self.waiting: list[asyncio.Future[None]] = []
        self.counts = StateSummary(1, 0, 10, 3)

    async def _answer(self, key: SharePartitionKey) -> None:
        if self.waits:
            waiting: asyncio.Future[None] = self.loop.create_future()
            self.waiting.append(waiting)
            await waiting
        if self.bug is not None:
            raise self.bug
        if key.partition in self.fails:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def go_on(self) -> None:
        """Let every call that waits end."""
        self.waits = False
        for each in self.waiting:
            if not each.done():
                each.set_result(None)
        self.loop.run_ready()

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        self.begun.append((*key, state_epoch, start_offset))
        await self._answer(key)

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        self.described.append(key)
        await self._answer(key)
        return self.counts

    async def delete(self, key: SharePartitionKey) -> None:
        self.deleted.append((key.topic_id, key.partition))
        await self._answer(key)

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        raise NotImplementedError

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        raise NotImplementedError


class Host:
    """One broker's share groups."""

    def __init__(self, **topics: int) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.metadata = ClusterMetadata()
        for name, partitions in (topics or {"q": 2}).items():
            self.metadata.set_topic(name, partitions)
        self.persister = FakePersister(self.loop)
        self.end_offset: Callable[[str, int], int] = lambda topic, index: 25
        self.settings: dict[str, Any] = {}
        self.epoch = 0
        self.fail_over()

    def fail_over(self) -> None:
        self.epoch += 1
        config = GroupCoordinatorConfig(offsets_topic_num_partitions=1, **self.settings)
        new_shard = shard_factory(
            config,
            now_ms=lambda: self.loop.now_ms,
            rng=random.Random(1),
            image=lambda: self.metadata.image,
            group_configs=GroupConfigs(ConfigResolver(config_schema(), 1, {}, {}), lambda: self.metadata.image.configs),
        )
        self.coordinator = GroupCoordinator(
            config, self.log, new_shard, loop=self.loop, now_ms=lambda: self.loop.now_ms
        )
        self.service = ShareGroupService(
            self.coordinator,
            self.persister,
            loop=self.loop,
            image=lambda: self.metadata.image,
            end_offset=self._end_offset,
        )
        self.coordinator.on_elected(0, self.epoch)
        self.loop.run_ready()

    async def _end_offset(self, topic: str, index: int) -> int:
        return self.end_offset(topic, index)

    def heartbeat(self, member: str, epoch: int, *topics: str) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=list(topics) or None
        )
        answer = start(self.service.heartbeat(request, Sender("client", "/host", 1)), self.loop)
        self.loop.run_ready()
        return answer.result()

    def join(self, member: str, *topics: str) -> int:
        """Join, and go on until nothing changes; returns the member's epoch."""
        epoch = int(self.heartbeat(member, 0, *(topics or ("q",))).member_epoch)
        for _ in range(3):
            self.loop.advance(INTERVAL_MS)
            epoch = int(self.heartbeat(member, epoch).member_epoch)
        return epoch

    @property
    def group(self) -> ShareGroup:
        found = shard_of(self.coordinator).groups["g"]
        assert isinstance(found, ShareGroup)
        return found

    def assigned(self, member: str) -> dict[bytes, frozenset[int]]:
        return dict(self.group.members[member].assigned)

    @property
    def q(self) -> bytes:
        return bytes(self.metadata.image.topics.by_name["q"].topic_id)
