"""The records of a topic as confluent-kafka's consumer reads them: what a reading of ours is compared with."""

from __future__ import annotations

import time
from typing import NamedTuple

import confluent_kafka

PATIENCE_S = 120.0


class Consumed(NamedTuple):
    """One record; the fields are named as the columns."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def consumed(servers: str, topic: str, partitions: int, isolation: str = "read_committed") -> list[Consumed]:
    """Return all records, in order of partition and offset."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "independent",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "isolation.level": isolation,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in range(partitions)])
    found: list[Consumed] = []
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"{topic}: only partitions {ended} were read to their end"
        for message in consumer.consume(10_000, 0.05):
            partition, offset, error = message.partition(), message.offset(), message.error()
            assert partition is not None
            if error is None:
                assert offset is not None
                found.append(Consumed(partition, offset, message.key(), message.value(), message.timestamp()[1]))
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                ended.add(partition)
    consumer.close()
    return sorted(found)
