"""A share partition's state in a real `ShareCoordinatorShard`, and the way of its leaders to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.share_coordinator_shard import ShareCoordinatorShard, StateSummary, StateWrite
from barnabas.share.share_partition import SharePartition
from barnabas.share.share_partition_manager import SharePartitionManager
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from barnabas.steps import sleep

T = TypeVar("T")

LOCK_MS = 1_000


class Settings:
    """Of the only group."""

    def __init__(self, deliveries: int, locks: int, lock_ms: int = LOCK_MS) -> None:
        self.values: dict[str, Any] = {
            "share.record.lock.duration.ms": lock_ms,
            "share.delivery.count.limit": deliveries,
            "share.partition.max.record.locks": locks,
            "share.renew.acknowledge.enable": True,
            "share.isolation.level": "read_uncommitted",
            "share.auto.offset.reset": "earliest",
        }

    def value(self, group_id: str, name: str) -> object:
        return self.values[name]

    def int_value(self, group_id: str, name: str) -> int:
        return int(self.values[name])


class Store:
    """What outlives leaders: a share coordinator's state, moved by its own records only."""

    def __init__(self, topic_id: bytes, rng: random.Random, snapshots: int) -> None:
        self.key = SharePartitionKey("g", topic_id, 0)
        self.rng = rng
        self.trouble = True
        self.shard = ShareCoordinatorShard(
            now_ms=lambda: 0, partition_count=lambda _: 1, updates_per_snapshot=snapshots, cold_interval_ms=300_000
        )
        self._offset = 0
        self.apply(self.shard.initialize(self.key, 1, -1))

    def apply(self, result: CoordinatorResult[T]) -> T:
        for record in result.records:
            self.written(record)
            self.shard.replay(record, self._offset, -1)
            self._offset += 1
        return result.response

    def written(self, record: CoordinatorRecord) -> None:
        """A record is appended; a subclass may note it."""


class Persister:
    """One leader's way to the store; nothing that is on its way arrives after the leader's end."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store = store
        self.loop = loop
        self.dead = False

    async def _call(self, operation: Callable[[], CoordinatorResult[T]]) -> T:
        kind = self.store.rng.random() if self.store.trouble and not self.dead else 1.0
        if kind < 0.05:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not self.dead:
            response = self.store.apply(operation())
        if kind < 0.4:
            await sleep(self.store.rng.choice((0.001, 0.01, 2.0)), self.loop)
        if self.dead:
            await self.loop.create_future()
        if kind < 0.1:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return response

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        return await self._call(lambda: self.store.shard.read(key, leader_epoch))

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        await self._call(lambda: self.store.shard.write(key, write))

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        raise NotImplementedError

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        raise NotImplementedError

    async def delete(self, key: SharePartitionKey) -> None:
        raise NotImplementedError


class WatchedManager(SharePartitionManager):
    """A manager whose share partitions a test may look at."""

    @property
    def known(self) -> list[SharePartition]:
        return list(self._partitions.values())

    @property
    def shared(self) -> SharePartition:
        """The only share partition."""
        (found,) = self.known
        return found
