"""Driver for kafka-python: `python kafka_python.py BOOTSTRAP`."""

from __future__ import annotations

import re
import sys
from typing import Any

import kafka
import secured
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from loop import data, headers_of, serve, text

STRATEGIES = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor,
              "cooperative-sticky": CooperativeStickyAssignor}  # fmt: skip


def code_of(error: BaseException) -> int | None:
    code = getattr(error, "errno", None)
    return code if isinstance(code, int) else None


def check(outcome: Any) -> None:
    """Raise what an answer holds as an error class, its name or its text; "OK" is none."""
    if isinstance(outcome, str) and outcome != "OK":
        name = next(word for word in re.findall(r"\w+", outcome) if word.endswith("Error"))
        outcome = getattr(kafka.errors, name)
    if isinstance(outcome, type) and issubclass(outcome, KafkaError) and outcome.errno:
        raise outcome()


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.connection = {"bootstrap_servers": bootstrap} | secured.kafka_python()
        self.consumer: KafkaConsumer | None = None
        self.producer: KafkaProducer | None = None
        self.administrator: KafkaAdminClient | None = None

    def version(self) -> str:
        return f"kafka-python {kafka.__version__}"

    # --- producing -----------------------------------------------------------------------------------------------

    def produce(self, topic: str, partition: int, records: list[dict[str, Any]], compression: str, acks: str,
                idempotent: bool, batch_bytes: int, max_request_bytes: int) -> list[int]:  # fmt: skip
        producer = KafkaProducer(
            **self.connection, acks="all" if acks == "all" else int(acks),
            compression_type=None if compression == "none" else compression, enable_idempotence=idempotent,
            linger_ms=20, batch_size=batch_bytes, max_request_size=max_request_bytes)  # fmt: skip
        try:
            return self.through(producer, topic, partition, records)
        finally:
            producer.close()

    def through(self, producer: KafkaProducer, topic: str, partition: int, records: list[dict[str, Any]]) -> list[int]:
        sent = [
            producer.send(topic, data(r["value"]), data(r["key"]), headers_of(r), partition, r.get("timestamp"))
            for r in records
        ]
        producer.flush(60)
        return [future.get(60).offset for future in sent]

    def open_producer(self, transactional_id: str | None, client_id: str, timeout_ms: int) -> bool:
        more = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms} if transactional_id else {}
        self.producer = KafkaProducer(**self.connection, client_id=client_id, linger_ms=5, acks="all", **more)
        if transactional_id:
            self.producer.init_transactions()
        return True

    def begin(self) -> bool:
        assert self.producer
        self.producer.begin_transaction()
        return True

    def send(self, topic: str, partition: int, records: list[dict[str, Any]]) -> list[int]:
        assert self.producer
        return self.through(self.producer, topic, partition, records)

    def send_offsets(self, group: str, offsets: list[list[Any]]) -> bool:
        assert self.producer
        assert self.consumer
        wanted = {TopicPartition(t, p): OffsetAndMetadata(o, "", -1) for t, p, o in offsets}
        self.producer.send_offsets_to_transaction(wanted, self.consumer.group_metadata())
        return True

    def commit_transaction(self) -> bool:
        assert self.producer
        self.producer.commit_transaction()
        return True

    def abort_transaction(self) -> bool:
        assert self.producer
        self.producer.abort_transaction()
        return True

    def throttled(self) -> float | None:
        assert self.producer
        metrics = self.producer.metrics()
        return next(
            (m["produce-throttle-time-max"] for m in metrics.values() if "produce-throttle-time-max" in m), None
        )

    # --- consuming -----------------------------------------------------------------------------------------------

    def settings(self, group: str | None, isolation: str) -> dict[str, Any]:
        return {**self.connection, "group_id": group, "enable_auto_commit": False,
                "auto_offset_reset": "earliest", "isolation_level": isolation}  # fmt: skip

    def subscribe(self, group: str, topics: list[str], protocol: str, strategy: str, session_ms: int, heartbeat_ms: int,
                  instance: str | None, isolation: str) -> bool:  # fmt: skip
        assert protocol == "classic"
        self.consumer = KafkaConsumer(
            *topics, **self.settings(group, isolation), partition_assignment_strategy=[STRATEGIES[strategy]],
            session_timeout_ms=session_ms, heartbeat_interval_ms=heartbeat_ms, group_instance_id=instance)  # fmt: skip
        return True

    def assign(self, group: str | None, partitions: list[list[Any]], isolation: str) -> bool:
        self.consumer = KafkaConsumer(**self.settings(group, isolation))
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

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        return [self.consumer.beginning_offsets([tp])[tp], self.consumer.end_offsets([tp])[tp]]

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        tp = TopicPartition(topic, partition)
        found = self.consumer.offsets_for_times({tp: timestamp})[tp]
        return found.offset if found else None

    # --- administration ------------------------------------------------------------------------------------------

    def admin(self) -> KafkaAdminClient:
        if self.administrator is None:
            self.administrator = KafkaAdminClient(**self.connection)
        return self.administrator

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> bool:
        self.admin().create_topics({topic: {"num_partitions": partitions, "replication_factor": 1, "configs": config}})
        return True

    def list_topics(self, prefix: str) -> list[str]:
        return sorted(name for name in self.admin().list_topics() if name.startswith(prefix))

    def describe_topic(self, topic: str) -> list[Any]:
        found = self.admin().describe_topics([topic])[0]["partitions"]
        return sorted(
            [p["partition_index"], p["leader_id"], list(p["replica_nodes"]), list(p["isr_nodes"])] for p in found
        )

    def add_partitions(self, topic: str, total: int) -> bool:
        self.admin().create_partitions({topic: total})
        return True

    def delete_topic(self, topic: str) -> bool:
        self.admin().delete_topics([topic])
        return True

    def alter_config(self, topic: str, config: dict[str, str]) -> bool:
        (found,) = self.admin().alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, config)]).values()
        check(found[topic])
        return True

    def describe_config(self, topic: str, names: list[str]) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names, ""))
        (found,) = self.admin().describe_configs([resource], config_filter="all").values()
        return {name: found[topic][name]["value"] for name in names}

    def delete_records(self, topic: str, partition: int, offset: int) -> bool:
        self.admin().delete_records({TopicPartition(topic, partition): offset})
        return True

    def list_groups(self, prefix: str) -> list[str]:
        return sorted(g["group_id"] for g in self.admin().list_groups() if g["group_id"].startswith(prefix))

    def describe_group(self, group: str) -> list[Any]:
        found = self.admin().describe_groups([group])[group]
        return [found["group_state"].upper(), len(found["members"])]

    def group_offsets(self, group: str, partitions: list[list[Any]]) -> list[Any]:
        found = self.admin().list_group_offsets({group: [TopicPartition(t, p) for t, p in partitions]})[group]
        offsets = [found.get(TopicPartition(t, p)) for t, p in partitions]
        return [
            [t, p, o.offset if o and o.offset >= 0 else None] for (t, p), o in zip(partitions, offsets, strict=True)
        ]

    def delete_offsets(self, group: str, topic: str, partition: int) -> bool:
        for outcome in self.admin().delete_group_offsets(group, [TopicPartition(topic, partition)]).values():
            check(outcome)
        return True

    def delete_group(self, group: str) -> bool:
        check(self.admin().delete_groups([group])[group])
        return True

    def close(self) -> bool:
        for client in (self.consumer, self.producer, self.administrator):
            if client:
                client.close()
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), code_of)
