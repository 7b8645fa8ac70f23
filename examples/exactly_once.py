"""Exactly once, from topic to topic: the output and the offset are one transaction.

    python examples/exactly_once.py localhost:9092 orders invoices

Each record of the input has exactly one in the output, whenever this program dies. Three things make it so:

- the offset is committed *by the producer, in the transaction* (`send_offsets_to_transaction`), so that both are there or neither is;
- the transactional id is the same after a restart: `init_transactions` ends whatever the dead instance left open;
- whoever reads the output reads `read_committed`.

It holds between topics of one cluster. For a database beside it, write the offset into the database's own transaction, or make the
write idempotent.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition


def transform(
    bootstrap: str,
    source: str,
    sink: str,
    function: Callable[[str], str],
    enough: Callable[[], bool] = lambda: False,
    settings: Mapping[str, object] | None = None,
    reached: Callable[[str], None] = lambda step: None,
) -> None:
    """Write one record to `sink` for each record of `source`, exactly once.

    Args:
        bootstrap: where the cluster answers.
        source: what to read.
        sink: where to write.
        function: from an input value to an output value.
        enough: asked after every transaction; True ends.
        settings: more of librdkafka's for the consumer, over the ones here.
        reached: told about each step of a transaction; this is where tests pull the plug.
    """
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "exactly-once", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "isolation.level": "read_committed", **(settings or {}),
    })  # fmt: skip
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{source}-to-{sink}"})
    producer.init_transactions()
    consumer.subscribe([source])
    try:
        while not enough():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                print(message.error().str(), file=sys.stderr)  # a topic that is not there, say; the library tries again
                continue
            producer.begin_transaction()
            try:
                producer.produce(sink, function(message.value().decode()), key=message.key())
                producer.flush()
                reached("written")
                position = TopicPartition(message.topic(), message.partition(), message.offset() + 1)
                producer.send_offsets_to_transaction([position], consumer.consumer_group_metadata())
                reached("offset sent")
                producer.commit_transaction()
                reached("committed")
            except KafkaException as raised:
                if not raised.args[0].txn_requires_abort():
                    raise  # fenced: another instance has taken over
                producer.abort_transaction()
                consumer.seek(TopicPartition(message.topic(), message.partition(), message.offset()))
    finally:
        consumer.close()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python examples/exactly_once.py BOOTSTRAP-SERVERS SOURCE-TOPIC SINK-TOPIC")
    with contextlib.suppress(KeyboardInterrupt):
        transform(sys.argv[1], sys.argv[2], sys.argv[3], lambda order: f"invoice for {order}")
