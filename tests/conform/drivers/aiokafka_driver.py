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
import secured
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import for_code
from aiokafka.structs import OffsetAndMetadata
from loop import data, headers_of, serve, text

# aiokafka has no cooperative assignor; round robin stands in where a scenario asks for it.
STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": RoundRobinPartitionAssignor,
}


def code_of(error: BaseException) -> int | None:
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) else None


def check(code: int, message: str | None = None) -> None:
    """Raise the error of a code that the library leaves to its caller."""
    if code:
        raise for_code(code)(message)


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.connection = {"bootstrap_servers": bootstrap} | secured.aiokafka()
        self.consumer: AIOKafkaConsumer | None = None
        self.producer: AIOKafkaProducer | None = None
        self.administrator: AIOKafkaAdminClient | None = None
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(240)

    def version(self) -> str:
        return f"aiokafka {aiokafka.__version__}"

    # --- producing -----------------------------------------------------------------------------------------------

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
                **self.connection,
                acks="all" if acks == "all" else int(acks),
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
                linger_ms=20,
                max_batch_size=batch_bytes,
                max_request_size=max_request_bytes,
            ) as producer:
                return await self.through(producer, topic, partition, records)

        return list(self.run(work()))

    async def through(
        self, producer: AIOKafkaProducer, topic: str, partition: int, records: list[dict[str, Any]]
    ) -> list[int]:
        sent = [
            await producer.send(
                topic, data(r["value"]), data(r["key"]), partition, r.get("timestamp"), headers=headers_of(r)
            )
            for r in records
        ]
        return [(await future).offset for future in sent]

    def open_producer(self, transactional_id: str | None, client_id: str, timeout_ms: int) -> bool:
        async def work() -> AIOKafkaProducer:
            more = (
                {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms} if transactional_id else {}
            )
            producer = AIOKafkaProducer(**self.connection, client_id=client_id, acks="all", linger_ms=5, **more)
            await producer.start()
            return producer

        self.producer = self.run(work())
        return True

    def begin(self) -> bool:
        assert self.producer
        self.run(self.producer.begin_transaction())
        return True

    def send(self, topic: str, partition: int, records: list[dict[str, Any]]) -> list[int]:
        assert self.producer
        return list(self.run(self.through(self.producer, topic, partition, records)))

    def send_offsets(self, group: str, offsets: list[list[Any]]) -> bool:
        assert self.producer
        wanted = {TopicPartition(t, p): OffsetAndMetadata(o, "") for t, p, o in offsets}
        self.run(self.producer.send_offsets_to_transaction(wanted, group))
        return True

    def commit_transaction(self) -> bool:
        assert self.producer
        self.run(self.producer.commit_transaction())
        return True

    def abort_transaction(self) -> bool:
        assert self.producer
        self.run(self.producer.abort_transaction())
        return True

    def throttled(self) -> None:
        return None

    # --- consuming -----------------------------------------------------------------------------------------------

    def open(self, topics: list[str], **settings: Any) -> None:
        async def work() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                *topics,
                **self.connection,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                **settings,
            )
            await consumer.start()
            return consumer

        self.consumer = self.run(work())

    def subscribe(
        self,
        group: str,
        topics: list[str],
        protocol: str,
        strategy: str,
        session_ms: int,
        heartbeat_ms: int,
        instance: str | None,
        isolation: str,
    ) -> bool:
        # A member's first join only answers when the whole group has joined; the command answers at once.
        async def work() -> None:
            consumer = AIOKafkaConsumer(
                *topics,
                **self.connection,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                group_id=group,
                partition_assignment_strategy=(STRATEGIES[strategy],),
                session_timeout_ms=session_ms,
                heartbeat_interval_ms=heartbeat_ms,
                group_instance_id=instance,
                isolation_level=isolation,
            )
            await consumer.start()
            self.consumer = consumer

        assert protocol == "classic"
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
        return sorted([tp.topic, tp.partition] for tp in self.consumer.assignment()) if self.consumer else []

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

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        return [
            self.run(self.consumer.beginning_offsets([tp]))[tp],
            self.run(self.consumer.end_offsets([tp]))[tp],
        ]

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        found = self.run(self.consumer.offsets_for_times({tp: timestamp}))[tp]
        return found.offset if found else None

    # --- administration ------------------------------------------------------------------------------------------

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call a coroutine of the admin client, which is opened when first needed."""

        async def work() -> Any:
            if self.administrator is None:
                self.administrator = AIOKafkaAdminClient(**self.connection)
                await self.administrator.start()
            return await getattr(self.administrator, method)(*arguments)

        return self.run(work())

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> bool:
        for _, code, message in self.ask(
            "create_topics", [NewTopic(topic, partitions, 1, topic_configs=config)]
        ).topic_errors:
            check(code, message)
        return True

    def list_topics(self, prefix: str) -> list[str]:
        return sorted(name for name in self.ask("list_topics") if name.startswith(prefix))

    def describe_topic(self, topic: str) -> list[Any]:
        found = self.ask("describe_topics", [topic])[0]["partitions"]
        return sorted([p["partition"], p["leader"], list(p["replicas"]), list(p["isr"])] for p in found)

    def add_partitions(self, topic: str, total: int) -> bool:
        self.ask("create_partitions", {topic: NewPartitions(total)})
        return True

    def delete_topic(self, topic: str) -> bool:
        for _, code in self.ask("delete_topics", [topic]).topic_error_codes:
            check(code)
        return True

    def alter_config(self, topic: str, config: dict[str, str]) -> bool:
        for answer in self.ask("alter_configs", [ConfigResource(ConfigResourceType.TOPIC, topic, config)]):
            for code, message, *_ in answer.resources:
                check(code, message)
        return True

    def describe_config(self, topic: str, names: list[str]) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names, ""))
        ((code, message, _, _, entries),) = self.ask("describe_configs", [resource])[0].resources
        check(code, message)
        return {entry[0]: entry[1] for entry in entries if entry[0] in names}

    def delete_records(self, topic: str, partition: int, offset: int) -> bool:
        self.ask("delete_records", {TopicPartition(topic, partition): RecordsToDelete(offset)})
        return True

    def list_groups(self, prefix: str) -> list[str]:
        return sorted(group[0] for group in self.ask("list_consumer_groups") if group[0].startswith(prefix))

    def describe_group(self, group: str) -> list[Any]:
        (found,) = self.ask("describe_consumer_groups", [group])[0].groups
        check(found[0])
        return [found[2].upper(), len(found[5])]

    def group_offsets(self, group: str, partitions: list[list[Any]]) -> list[Any]:
        found = self.ask("list_consumer_group_offsets", group)
        offsets = {tp: o.offset for tp, o in found.items() if o.offset >= 0}
        return [[t, p, offsets.get(TopicPartition(t, p))] for t, p in partitions]

    def close(self) -> bool:
        if self.consumer:
            self.run(self.consumer.stop())
        if self.producer:
            self.run(self.producer.stop())
        if self.administrator:
            self.run(self.administrator.close())
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), code_of)
