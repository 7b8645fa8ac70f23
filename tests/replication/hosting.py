"""A replica manager over real logs in a temporary folder, in virtual time: what the tests of this room and of its APIs share."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.log.disk import Disk, OsDisk
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.replication.fetch_session_cache import FetchSessionCache
from barnabas.replication.replica_changes import apply_delta
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.simulation.node import EPOCH_MS
from barnabas.simulation.world_loop import WorldLoop
from barnabas.turns import new_budget
from tests.at_once import at_once

NODE = 1


def topic_id(number: int) -> Uuid:
    return Uuid(bytes(14) + number.to_bytes(2, "big"))


class Hosting:
    """One broker's replicas, and the requests of one client."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self.loop = WorldLoop()
        self.now_ms = lambda: EPOCH_MS + int(self.loop.time() * 1000)
        self.image = MetadataImage()
        self.configs: dict[str, LogConfig] = {}
        self.logs = LogManager(disk or OsDisk(), str(root), now_ms=self.now_ms)
        at_once(self.logs.open())
        self.replicas = ReplicaManager(
            self.logs,
            self.loop,
            self.now_ms,
            NODE,
            lambda name, image: self.configs.get(name, LogConfig()),
        )
        self.sessions = FetchSessionCache(1000, random.Random(7))
        self.services: Any = SimpleNamespace(
            authorizer=None,
            node_id=NODE,
            replica_manager=self.replicas,
            fetch_sessions=self.sessions,
            image=lambda: self.image,
            now_ms=self.now_ms,
            loop=self.loop,
            config=SimpleNamespace(fetch_max_bytes=57_671_680, advertised_listeners=None),
        )

    def close(self) -> None:
        cancel_waiting(self.replicas)
        self.spin()
        at_once(self.logs.close(clean=False))
        assert not self.loop.errors, self.loop.errors
        self.loop.close()

    def replay(self, *records: Any) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply()
        at_once(apply_delta(self.replicas, delta, self.image))

    def reconfigure(self, name: str, config: LogConfig) -> None:
        """Give a topic other settings."""
        self.configs[name] = config
        topic = self.replicas.topics[name]
        topic.config_changed()
        for partition in topic.partitions.values():
            partition.config_changed()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        number: int | None = None,
        config: LogConfig | None = None,
        replicas: tuple[int, ...] = (NODE,),
        leader: int = NODE,
        isr: tuple[int, ...] = (),
    ) -> Uuid:
        """Create a topic through metadata records; returns its id."""
        if config is not None:
            self.configs[name] = config
        id_ = topic_id(number if number is not None else len(self.image.topics.by_id) + 1)
        self.replay(
            TopicRecord(name=name, topic_id=id_),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=id_,
                    replicas=list(replicas),
                    isr=list(isr or replicas),
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index in range(partitions)
            ),
        )
        return id_

    def delete_topic(self, id_: Uuid) -> None:
        self.replay(RemoveTopicRecord(topic_id=id_))

    def change(self, id_: Uuid, index: int = 0, **fields: Any) -> None:
        """Change a partition's registration: leader, isr."""
        self.replay(PartitionChangeRecord(topic_id=id_, partition_id=index, **fields))

    def context(self, api_key: int, version: int, *, client_id: str = "test") -> RequestContext:
        """Return the context of a request, which is the first in its turn of the loop."""
        new_budget()
        connection = ConnectionInfo("c1", local_host="127.0.0.1", local_port=9092)
        return RequestContext(self.services, connection, api_key, version, 1, client_id)

    def append(self, topic: str, *values: bytes, index: int = 0, timestamp: int | None = None) -> int:
        """Append one batch as a producer would, without a request; returns its base offset."""
        return self.replicas.append(topic, index, batch(*values, timestamp=timestamp or self.now_ms()), 1).base_offset

    def spin(self) -> None:
        """Let everything run that is ready now, without moving the clock."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))

    def advance(self, ms: int) -> None:
        """Move the clock; timers due on the way fire."""
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))
        self.spin()


def cancel_waiting(replicas: ReplicaManager) -> None:
    """Cancel the requests that wait, as the end of their connections does."""
    for purgatory in (replicas.delayed_fetches, replicas.delayed_produces, replicas.delayed_deletions):
        for operation in [each for waiting in purgatory.watchers.values() for each in waiting]:
            operation.future.cancel()


def batch(
    *values: bytes | None, timestamp: int = 1_767_225_600_000, key: bytes | None = b"k", **options: Any
) -> memoryview:
    """One batch with a record for each value."""
    return memoryview(build_batch([(timestamp, key, value, []) for value in values], **options))
