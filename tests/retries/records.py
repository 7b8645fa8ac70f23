"""What the tests of retries write to a broker, and what a consumer of committed records finds there."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from barnabas.retries.committed_records import READER_SETTINGS, log_ends, read_committed
from barnabas.retries.record import Record


def write(bootstrap: str, topic: str, records: Iterable[tuple[str | None, str]], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, value, key, partition=partition)
    assert producer.flush(30) == 0


def committed(bootstrap: str, topic: str, partitions: int = 1) -> list[Record]:
    """Return the committed records of a topic, partition by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **READER_SETTINGS})
    begin = {(topic, each): 0 for each in range(partitions)}
    try:
        found = list(read_committed(consumer, begin, log_ends(AdminClient({"bootstrap.servers": bootstrap}), begin)))
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition, each.offset))


def values(records: Iterable[Record]) -> list[str]:
    return [(each.value or b"").decode() for each in records]
