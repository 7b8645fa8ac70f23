"""Driver for kafka-python: `python kafka_python.py BOOTSTRAP`."""

from __future__ import annotations

import sys
from typing import Any

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.structs import OffsetAndMetadata
from loop import data, serve, text

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor,
              "cooperative-sticky": CooperativeStickyAssignor}  # fmt: skip


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.consumer: KafkaConsumer | None = None

    def version(self) -> str:
        return f"kafka-python {kafka.__version__}"

    def produce(self, topic: str, partition: int, records: list[dict[str, Any]], compression: str, acks: str,
                idempotent: bool, batch_bytes: int, max_request_bytes: int) -> list[int]:  # fmt: skip
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap, acks="all" if acks == "all" else int(acks),
            compression_type=None if compression == "none" else compression, enable_idempotence=idempotent,
            linger_ms=20, batch_size=batch_bytes, max_request_size=max_request_bytes)  # fmt: skip
        sent = [
            producer.send(topic, data(r["value"]), data(r["key"]), [(n, data(v)) for n, v in r["headers"]], partition)
            for r in records
        ]
        producer.flush(60)
        offsets = [future.get(60).offset for future in sent]
        producer.close()
        return offsets

    def settings(self, group: str | None) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, "group_id": group, "enable_auto_commit": False,
                "auto_offset_reset": "earliest"}  # fmt: skip

    def subscribe(self, group: str, topics: list[str], strategy: str, session_ms: int, heartbeat_ms: int,
                  instance: str | None) -> bool:  # fmt: skip
        self.consumer = KafkaConsumer(
            *topics, **self.settings(group), partition_assignment_strategy=[STRATEGIES[strategy]],
            session_timeout_ms=session_ms, heartbeat_interval_ms=heartbeat_ms, group_instance_id=instance)  # fmt: skip
        return True

    def assign(self, group: str | None, partitions: list[list[Any]], isolation: str) -> bool:
        self.consumer = KafkaConsumer(**self.settings(group), isolation_level=isolation)
        self.consumer.assign([TopicPartition(t, p) for t, p in partitions])
        return True

    def poll(self, max: int, timeout_ms: int) -> list[Any]:
        assert self.consumer
        return [
            [r.topic, r.partition, r.offset, text(r.key), text(r.value), [[n, text(v)] for n, v in r.headers]]
            for batch in self.consumer.poll(timeout_ms, max_records=max).values()
            for r in batch
        ]

    def assignment(self) -> list[Any]:
        assert self.consumer
        return sorted([tp.topic, tp.partition] for tp in self.consumer.assignment())

    def commit(self, offsets: list[list[Any]]) -> bool:
        assert self.consumer
        self.consumer.commit({TopicPartition(t, p): OffsetAndMetadata(o, m, -1) for t, p, o, m in offsets})
        return True

    def committed(self, partitions: list[list[Any]]) -> list[Any]:
        assert self.consumer
        return [[t, p, self.consumer.committed(TopicPartition(t, p))] for t, p in partitions]

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        assert self.consumer
        self.consumer.seek(TopicPartition(topic, partition), offset)
        return True

    def position(self, topic: str, partition: int) -> int:
        assert self.consumer
        return int(self.consumer.position(TopicPartition(topic, partition)))

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        return [self.consumer.beginning_offsets([tp])[tp], self.consumer.end_offsets([tp])[tp]]

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        found = self.consumer.offsets_for_times({tp: timestamp})[tp]
        return found.offset if found else None

    def close(self) -> bool:
        if self.consumer:
            self.consumer.close()
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]))
