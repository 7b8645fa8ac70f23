"""The topic `orders` of one partition, as two independent clients see it: confluent-kafka writes, kafka-python reads."""

from __future__ import annotations

import kafka
from confluent_kafka import KafkaError, Producer

PATIENCE_SECONDS = 60


def send(producer: Producer, value: str = "teapot") -> int | KafkaError:
    """Return the offset of a record, or why it has none."""
    outcomes: list[int | KafkaError | None] = []
    producer.produce("orders", value, on_delivery=lambda error, message: outcomes.append(error or message.offset()))
    producer.flush(PATIENCE_SECONDS)
    assert outcomes[0] is not None
    return outcomes[0]


def values(bootstrap_servers: str) -> list[bytes]:
    """Return what is in the topic from its beginning to its end as of now."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", enable_auto_commit=False
    )
    at = kafka.TopicPartition("orders", 0)
    consumer.assign([at])
    (end,) = consumer.end_offsets([at]).values()
    found: list[bytes] = []
    while consumer.position(at) < end:
        found += [record.value for records in consumer.poll(1000).values() for record in records]
    consumer.close()
    return found
