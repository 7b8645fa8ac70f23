"""Driver for confluent-kafka (librdkafka): `python confluent.py BOOTSTRAP`."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
import secured
from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from loop import data, headers_of, serve, text

# What librdkafka reports and then mends by itself: a coordinator that is loading, a broker that restarts.
PASSING = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
           KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT}  # fmt: skip


def code_of(error: BaseException) -> int | None:
    told = error.args[0] if isinstance(error, KafkaException) and error.args else None
    return told.code() if isinstance(told, KafkaError) else None


class Driver:
    def __init__(self, bootstrap: str) -> None:
        self.connection = {"bootstrap.servers": bootstrap} | secured.librdkafka()
        self.consumer: Consumer | None = None
        self.sharer: ShareConsumer | None = None
        self.producer: Producer | None = None
        self.administrator: AdminClient | None = None
        self.longest_throttle_ms = 0.0

    def version(self) -> str:
        return f"confluent-kafka {confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"

    # --- producing -----------------------------------------------------------------------------------------------

    def produce(self, topic: str, partition: int, records: list[dict[str, Any]], compression: str, acks: str,
                idempotent: bool, batch_bytes: int, max_request_bytes: int) -> list[int]:  # fmt: skip
        settings = {**self.connection, "acks": acks, "compression.type": compression,
                    "enable.idempotence": idempotent, "linger.ms": 20, "batch.size": batch_bytes,
                    "message.max.bytes": max_request_bytes}  # fmt: skip
        return self.through(Producer(settings), topic, partition, records)

    def through(self, producer: Producer, topic: str, partition: int, records: list[dict[str, Any]]) -> list[int]:
        offsets: list[Any] = [None] * len(records)

        def delivered(index: int) -> Any:
            def report(error: Any, message: Any) -> None:
                offsets[index] = message.offset() if error is None else error

            return report

        for index, r in enumerate(records):
            time = {"timestamp": r["timestamp"]} if "timestamp" in r else {}
            producer.produce(
                topic, data(r["value"]), data(r["key"]), partition, delivered(index), headers=headers_of(r), **time
            )
        producer.flush(60)
        for outcome in offsets:
            if not isinstance(outcome, int):
                raise KafkaException(outcome)
        return offsets

    def open_producer(self, transactional_id: str | None, client_id: str, timeout_ms: int) -> bool:
        settings: dict[str, Any] = {**self.connection, "client.id": client_id, "linger.ms": 5,
                                    "throttle_cb": self.on_throttle}  # fmt: skip
        if transactional_id:
            settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        self.producer = Producer(settings)
        if transactional_id:
            self.producer.init_transactions(60)
        return True

    def on_throttle(self, event: Any) -> None:
        self.longest_throttle_ms = max(self.longest_throttle_ms, event.throttle_time * 1000)

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
        wanted = [TopicPartition(t, p, o) for t, p, o in offsets]
        self.producer.send_offsets_to_transaction(wanted, self.consumer.consumer_group_metadata(), 60)
        return True

    def commit_transaction(self) -> bool:
        assert self.producer
        self.producer.commit_transaction(60)
        return True

    def abort_transaction(self) -> bool:
        assert self.producer
        self.producer.abort_transaction(60)
        return True

    def throttled(self) -> float:
        assert self.producer
        self.producer.poll(0.1)
        return self.longest_throttle_ms

    # --- consuming -----------------------------------------------------------------------------------------------

    def settings(self, group: str | None) -> dict[str, Any]:
        return {**self.connection, "group.id": group or "no-group", "enable.auto.commit": False,
                "auto.offset.reset": "earliest"}  # fmt: skip

    def subscribe(self, group: str, topics: list[str], protocol: str, strategy: str, session_ms: int, heartbeat_ms: int,
                  instance: str | None, isolation: str) -> bool:  # fmt: skip
        settings = self.settings(group) | {"isolation.level": isolation, "group.protocol": protocol}
        if protocol == "classic":
            settings |= {"partition.assignment.strategy": strategy, "session.timeout.ms": session_ms,
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
                raise KafkaException(m.error())
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
                raise KafkaException(done.error)
        return True

    def committed(self, partitions: list[list[Any]]) -> list[Any]:
        assert self.consumer
        found = self.consumer.committed([TopicPartition(t, p) for t, p in partitions], 30)
        return [[tp.topic, tp.partition, tp.offset if tp.offset >= 0 else None] for tp in found]

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        assert self.consumer
        self.consumer.seek(TopicPartition(topic, partition, offset))
        return True

    def bounds(self, topic: str, partition: int) -> list[int]:
        assert self.consumer
        return list(self.consumer.get_watermark_offsets(TopicPartition(topic, partition), 30))

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> int | None:
        assert self.consumer
        found = self.consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], 30)[0].offset
        return found if found >= 0 else None

    # --- administration ------------------------------------------------------------------------------------------

    def admin(self) -> AdminClient:
        if self.administrator is None:
            self.administrator = AdminClient(self.connection)
        return self.administrator

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> bool:
        self.admin().create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(200)
        return True

    def list_topics(self, prefix: str) -> list[str]:
        return sorted(name for name in self.admin().list_topics(timeout=200).topics if name.startswith(prefix))

    def describe_topic(self, topic: str) -> list[Any]:
        found = self.admin().list_topics(topic, 30).topics[topic].partitions
        return [[p.id, p.leader, p.replicas, p.isrs] for _, p in sorted(found.items())]

    def add_partitions(self, topic: str, total: int) -> bool:
        self.admin().create_partitions([NewPartitions(topic, total)])[topic].result(200)
        return True

    def delete_topic(self, topic: str) -> bool:
        self.admin().delete_topics([topic])[topic].result(200)
        return True

    def alter_config(self, topic: str, config: dict[str, str]) -> bool:
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in config.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin().incremental_alter_configs([resource])[resource].result(200)
        return True

    def describe_config(self, topic: str, names: list[str]) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found = self.admin().describe_configs([resource])[resource].result(200)
        return {name: found[name].value for name in names}

    def delete_records(self, topic: str, partition: int, offset: int) -> bool:
        wanted = TopicPartition(topic, partition, offset)
        self.admin().delete_records([wanted])[wanted].result(200)
        return True

    def list_groups(self, prefix: str) -> list[str]:
        found = self.admin().list_consumer_groups().result(200)
        return sorted(group.group_id for group in found.valid if group.group_id.startswith(prefix))

    def describe_group(self, group: str) -> list[Any]:
        found = self.admin().describe_consumer_groups([group])[group].result(200)
        return [found.state.name.replace("_", ""), len(found.members)]

    def group_offsets(self, group: str, partitions: list[list[Any]]) -> list[Any]:
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(t, p) for t, p in partitions])
        found = self.admin().list_consumer_group_offsets([wanted])[group].result(200).topic_partitions
        return [[tp.topic, tp.partition, tp.offset if tp.offset >= 0 else None] for tp in found]

    def delete_group(self, group: str) -> bool:
        self.admin().delete_consumer_groups([group])[group].result(200)
        return True

    def share_subscribe(self, group: str, topics: list[str]) -> bool:
        self.sharer = ShareConsumer({**self.connection, "group.id": group, "share.acknowledgement.mode": "explicit"})
        self.sharer.subscribe(topics)
        return True

    def share_poll(self, timeout_ms: int) -> list[Any]:
        assert self.sharer
        found = []
        for m in self.sharer.poll(timeout_ms / 1000):
            if m.error():
                raise KafkaException(m.error())
            found.append([m.topic(), m.partition(), m.offset(), text(m.value()), m.delivery_count()])
        return found

    def share_acknowledge(self, records: list[list[Any]]) -> bool:
        assert self.sharer
        for topic, partition, offset, kind in records:
            self.sharer.acknowledge_offset(topic, partition, offset, AcknowledgeType[kind.upper()])
        for error in self.sharer.commit_sync(30.0).values():
            if error is not None:
                raise error
        return True

    def close(self) -> bool:
        if self.consumer:
            self.consumer.close()
        if self.sharer:
            self.sharer.close()
        return True


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), code_of)
