"""Values that go through a broker with ordinary clients and a store."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.claims import ClaimConsumer, ClaimProducer
from barnabas.embedded.broker import Broker

PATIENCE_SECONDS = 60


def consumer_of(broker: Broker, topic: str, store: Any = None) -> Any:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": f"readers-of-{topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer if store is None else ClaimConsumer(consumer, store)


def produced(broker: Broker, topic: str, store: Any, values: list[Any], **options: Any) -> None:
    broker.create_topic(topic, partitions=1)
    producer = ClaimProducer(Producer({"bootstrap.servers": broker.bootstrap_servers}), store)
    errors: list[Any] = []
    for value in values:
        producer.produce(topic, value, "key", on_delivery=lambda error, _: errors.append(error), **options)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert errors == [None] * len(values)
