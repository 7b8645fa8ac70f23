"""A common bug: the events of one order lie in two partitions, and a consumer sees the second one first.

    python examples/order_of_events.py localhost:9092

Each order is created, and later cancelled. Each event has an id. A producer that takes the event's id as the key puts
the two events of an order into two partitions. Nothing says which partition is read first: after a restart, a rebalance
or a pause, the cancellation comes before the order, and is dropped as the cancellation of an unknown order. The order
stays open for ever.

With the order's id as the key both events have one partition, and one order. The cure is the key, and no cure is in the
consumer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 2
PATIENCE_SECONDS = 60


class Event(NamedTuple):
    id: str
    order: str
    what: str


def events(orders: int) -> list[Event]:
    """Return the events of so many orders as they happen: all are created, then all are cancelled."""
    made = [Event(f"event-{number}", f"order-{number}", "created") for number in range(orders)]
    return made + [Event(f"event-{orders + number}", f"order-{number}", "cancelled") for number in range(orders)]


def send(bootstrap: str, topic: str, happened: Iterable[Event], key: str) -> None:
    """Create the topic, and produce the events; `key` names the field that is the key."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS)]).values():
        created.result(PATIENCE_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap})
    for event in happened:
        producer.produce(topic, f"{event.order} {event.what}", getattr(event, key))
    if producer.flush(PATIENCE_SECONDS):
        raise TimeoutError(f"{topic}: not every event was acknowledged within {PATIENCE_SECONDS} s")


def open_orders(bootstrap: str, topic: str, partitions: Sequence[int]) -> set[str]:
    """Return the orders that are open when all events are read, partition after partition, as a consumer may get them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "orders", "enable.auto.commit": False})
    found: set[str] = set()
    for partition in partitions:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_SECONDS)
        consumer.assign([TopicPartition(topic, partition, 0)])
        for _ in range(end):
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None or message.error():
                raise RuntimeError(f"{topic}: {message.error() if message else 'no record'}")
            order, what = message.value().decode().split()
            if what == "created":
                found.add(order)
            else:
                found.discard(order)  # of an unknown order: dropped, and here the bug becomes silent
    consumer.close()
    return found


def main(bootstrap: str) -> None:
    """Show both keys."""
    for key in ("id", "order"):
        topic = f"orders-by-{key}"
        send(bootstrap, topic, events(20), key)
        for partitions in ((0, 1), (1, 0)):
            left = open_orders(bootstrap, topic, partitions)
            print(f"key {key:<5}  partitions {partitions} read: {len(left)} of 20 cancelled orders are still open")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/order_of_events.py BOOTSTRAP-SERVERS")
    main(sys.argv[1])
