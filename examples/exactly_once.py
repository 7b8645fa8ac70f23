"""Exactly once, from topic to topic: the output and the offset are one transaction.

    python examples/exactly_once.py localhost:9092 orders invoices

Each input record has exactly one output record, whenever this program dies. Three things guarantee it:

- the producer commits the offset *in the transaction* (`send_offsets_to_transaction`), so that output and offset commit
  together or not at all;
- the transactional id is the same after a restart: `init_transactions` ends the transaction that the dead instance left
  open;
- consumers of the output use `read_committed`.

The guarantee holds between topics of one cluster. For a database, write the offset in the database's own transaction,
or make the write idempotent.
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
        bootstrap: the cluster's address.
        source: what to read.
        sink: where to write.
        function: computes an output value from an input value.
        enough: called after every transaction; True ends the loop.
        settings: further librdkafka settings for the consumer; they override those below.
        reached: called after each step of a transaction; tests kill the process here.
    """
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "exactly-once", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "isolation.level": "read_committed", **(settings or {}),
    })  # fmt: skip
    # The last setting: see docs/delivery-guarantees.md, "Restarting nodes under librdkafka".
    producer = Producer({
        "bootstrap.servers": bootstrap, "transactional.id": f"{source}-to-{sink}", "connections.max.idle.ms": 10_000,
    })  # fmt: skip
    producer.init_transactions()
    consumer.subscribe([source])
    try:
        while not enough():
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                print(message.error().str(), file=sys.stderr)  # for example a missing topic; the library retries
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
