"""Driver for confluent-kafka (librdkafka): `python confluent.py BOOTSTRAP`."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from loop import data, serve, text

# A coordinator that is still loading: librdkafka reports it and goes on by itself.
PASSING = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
           KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}  # fmt: skip


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.consumer: Consumer | None = None

    def version(self) -> str:
        return f"confluent-kafka {confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"

    def produce(self, topic: str, partition: int, records: list[dict[str, Any]], compression: str, acks: str,
                idempotent: bool, batch_bytes: int, max_request_bytes: int) -> list[int]:  # fmt: skip
        settings = {"bootstrap.servers": self.bootstrap, "acks": acks, "compression.type": compression,
                    "enable.idempotence": idempotent, "linger.ms": 20, "batch.size": batch_bytes,
                    "message.max.bytes": max_request_bytes}  # fmt: skip
        producer = Producer(settings)
        offsets: list[Any] = [None] * len(records)

        def delivered(index: int) -> Any:
            def report(error: Any, message: Any) -> None:
                offsets[index] = message.offset() if error is None else error

            return report

        for index, r in enumerate(records):
            headers = [(name, data(value)) for name, value in r["headers"]]
            producer.produce(topic, data(r["value"]), data(r["key"]), partition, delivered(index), headers=headers)
        producer.flush(60)
        for outcome in offsets:
            if not isinstance(outcome, int):
                raise RuntimeError(f"not delivered: {outcome}")
        return offsets

    def settings(self, group: str | None) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "group.id": group or "no-group", "enable.auto.commit": False,
                "auto.offset.reset": "earliest"}  # fmt: skip

    def subscribe(self, group: str, topics: list[str], strategy: str, session_ms: int, heartbeat_ms: int,
                  instance: str | None) -> bool:  # fmt: skip
        settings = self.settings(group) | {"partition.assignment.strategy": strategy, "session.timeout.ms": session_ms,
                                           "heartbeat.interval.ms": heartbeat_ms}  # fmt: skip
        if instance:
            settings["group.instance.id"] = instance
        self.consumer = Consumer(settings)
        self.consumer.subscribe(topics)
        return True

    def assign(self, group: str | None, partitions: list[list[Any]], isolation: str) -> bool:
        self.consumer = Consumer(self.settings(group) | {"isolation.level": isolation})
        # Without a group librdkafka must be told where to begin, or it asks a coordinator all the same.
        begin = confluent_kafka.OFFSET_STORED if group else confluent_kafka.OFFSET_BEGINNING
        self.consumer.assign([TopicPartition(t, p, begin) for t, p in partitions])
        return True

    def poll(self, max: int, timeout_ms: int) -> list[Any]:
        assert self.consumer
        found = []
        for m in self.consumer.consume(max, timeout_ms / 1000):
            if m.error():
                if m.error().code() in PASSING:
                    continue
                raise RuntimeError(str(m.error()))
            headers = [[name, text(value)] for name, value in m.headers() or []]
            found.append([m.topic(), m.partition(), m.offset(), text(m.key()), text(m.value()), headers])
        return found

    def assignment(self) -> list[Any]:
        assert self.consumer
        return sorted([tp.topic, tp.partition] for tp in self.consumer.assignment())

    def commit(self, offsets: list[list[Any]]) -> bool:
        assert self.consumer
        wanted = [TopicPartition(t, p, o, metadata=m) for t, p, o, m in offsets]
        for done in self.consumer.commit(offsets=wanted, asynchronous=False) or []:
            if done.error:
                raise RuntimeError(str(done.error))
        return True

    def committed(self, partitions: list[list[Any]]) -> list[Any]:
        assert self.consumer
        found = self.consumer.committed([TopicPartition(t, p) for t, p in partitions], 30)
        return [[tp.topic, tp.partition, tp.offset if tp.offset >= 0 else None] for tp in found]

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        assert self.consumer
        self.consumer.seek(TopicPartition(topic, partition, offset))
        return True

    def position(self, topic: str, partition: int) -> int:
        assert self.consumer
        return int(self.consumer.position([TopicPartition(topic, partition)])[0].offset)

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        return list(self.consumer.get_watermark_offsets(TopicPartition(topic, partition), 30))

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        found = self.consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], 30)[0].offset
        return found if found >= 0 else None

    def close(self) -> bool:
        if self.consumer:
            self.consumer.close()
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]))
