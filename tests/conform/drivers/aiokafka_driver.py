"""Driver for aiokafka: `python aiokafka_driver.py BOOTSTRAP`.

The loop runs in a thread of its own, so that heartbeats go on between commands.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.structs import OffsetAndMetadata
from loop import data, serve, text

# aiokafka has no cooperative assignor; round robin stands in where a scenario asks for it.
STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": RoundRobinPartitionAssignor,
}


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.consumer: AIOKafkaConsumer | None = None
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(90)

    def version(self) -> str:
        return f"aiokafka {aiokafka.__version__}"

    def produce(
        self,
        topic: str,
        partition: int,
        records: list[dict[str, Any]],
        compression: str,
        acks: str,
        idempotent: bool,
        batch_bytes: int,
        max_request_bytes: int,
    ) -> list[int]:
        async def work() -> list[int]:
            async with AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks="all" if acks == "all" else int(acks),
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
                linger_ms=20,
                max_batch_size=batch_bytes,
                max_request_size=max_request_bytes,
            ) as producer:
                sent = [
                    await producer.send(
                        topic,
                        data(r["value"]),
                        data(r["key"]),
                        partition,
                        headers=[(n, data(v)) for n, v in r["headers"]],
                    )
                    for r in records
                ]
                return [(await future).offset for future in sent]

        return list(self.run(work()))

    def open(self, topics: list[str], **settings: Any) -> None:
        async def work() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                *topics,
                bootstrap_servers=self.bootstrap,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                **settings,
            )
            await consumer.start()
            return consumer

        self.consumer = self.run(work())

    def subscribe(
        self, group: str, topics: list[str], strategy: str, session_ms: int, heartbeat_ms: int, instance: str | None
    ) -> bool:
        # A member's first join only answers when the whole group has joined; the command answers at once.
        async def work() -> None:
            consumer = AIOKafkaConsumer(
                *topics,
                bootstrap_servers=self.bootstrap,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                group_id=group,
                partition_assignment_strategy=(STRATEGIES[strategy],),
                session_timeout_ms=session_ms,
                heartbeat_interval_ms=heartbeat_ms,
                group_instance_id=instance,
            )
            await consumer.start()
            self.consumer = consumer

        asyncio.run_coroutine_threadsafe(work(), self.loop)
        return True

    def in_loop(self, method: str, *arguments: Any) -> None:
        """Call a plain method of the consumer in its loop, as it demands."""

        async def work() -> None:
            getattr(self.consumer, method)(*arguments)

        self.run(work())

    def assign(self, group: str | None, partitions: list[list[Any]], isolation: str) -> bool:
        self.open([], group_id=group, isolation_level=isolation)
        self.in_loop("assign", [TopicPartition(t, p) for t, p in partitions])
        return True

    def poll(self, max: int, timeout_ms: int) -> list[Any]:
        if self.consumer is None:
            self.run(asyncio.sleep(timeout_ms / 1000))
            return []
        batches = self.run(self.consumer.getmany(timeout_ms=timeout_ms, max_records=max))
        return [
            [r.topic, r.partition, r.offset, text(r.key), text(r.value), [[n, text(v)] for n, v in r.headers]]
            for batch in batches.values()
            for r in batch
        ]

    def assignment(self) -> list[Any]:
        return sorted([tp.topic, tp.partition] for tp in (self.consumer.assignment() if self.consumer else ()))

    def commit(self, offsets: list[list[Any]]) -> bool:
        assert self.consumer
        self.run(self.consumer.commit({TopicPartition(t, p): OffsetAndMetadata(o, m) for t, p, o, m in offsets}))
        return True

    def committed(self, partitions: list[list[Any]]) -> list[Any]:
        assert self.consumer
        return [[t, p, self.run(self.consumer.committed(TopicPartition(t, p)))] for t, p in partitions]

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        self.in_loop("seek", TopicPartition(topic, partition), offset)
        return True

    def position(self, topic: str, partition: int) -> int:
        assert self.consumer
        return int(self.run(self.consumer.position(TopicPartition(topic, partition))))

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        first = self.run(self.consumer.beginning_offsets([tp]))[tp]
        return [first, self.run(self.consumer.end_offsets([tp]))[tp]]

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        found = self.run(self.consumer.offsets_for_times({tp: timestamp}))[tp]
        return found.offset if found else None

    def close(self) -> bool:
        if self.consumer:
            self.run(self.consumer.stop())
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]))
