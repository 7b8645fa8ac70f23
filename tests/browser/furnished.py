"""A cluster with something on every page, and with hostile text wherever another program may choose the text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer

from barnabas.client.admin import Admin, NewTopic
from tests.conform.brokers import await_leaders

PATIENCE_SECONDS = 60
HOSTILE = '<script>document.title = "hostile"</script><img src=x onerror=alert(1)>'
"""A group, a client, a transactional id, a key, a value and a header are named so."""
UNBREAKABLE = "x" * 3_000
LONG_TOPIC = "long." + "topic-name" * 20
START_MS = 1_700_000_000_000


def filled(bootstrap: str, topic: str, count: int) -> None:
    """Append `count` records of JSON, a millisecond apart from `START_MS` on, with the keys `k0`, `k1`, … and a header on every tenth."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 200_000})
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [("source", b"shop")] if number % 10 == 0 else []
        value = b'{"n": %d, "amount": %d}' % (number, number % 1000)
        while True:
            try:
                producer.produce(topic, value, b"k%d" % number, timestamp=START_MS + number, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(10 * PATIENCE_SECONDS) == 0


@contextmanager
def furnished(bootstrap: str) -> Iterator[None]:
    """Furnish a cluster; a member of a group and an open transaction stay until the end."""
    topics = {"orders": 2, LONG_TOPIC: 1, **{f"many-{number:02}": 1 for number in range(60)}}
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name, partitions in topics.items()])
    await_leaders(bootstrap, topics)
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": HOSTILE})
    for number in range(40):
        producer.produce("orders", f'{{"amount": {number}}}', f"customer-{number % 5}", partition=0)
    producer.produce("orders", HOSTILE, HOSTILE, partition=0, headers=[(HOSTILE, HOSTILE), ("empty", None)])
    producer.produce("orders", UNBREAKABLE, UNBREAKABLE, partition=0, headers=[(UNBREAKABLE, UNBREAKABLE)])
    producer.produce("orders", bytes(range(256)), b"\x00\xff", partition=0)
    producer.produce("orders", None, "a tombstone", partition=0)
    producer.produce(LONG_TOPIC, "1", partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    with member_and_transaction(bootstrap, group=HOSTILE, client=HOSTILE, transaction=HOSTILE) as held:
        held.produce("orders", "open", partition=1)
        held.flush(PATIENCE_SECONDS)
        yield


@contextmanager
def member_and_transaction(bootstrap: str, *, group: str, client: str, transaction: str) -> Iterator[Producer]:
    """Have a member that has read and committed one of the orders; yield a producer in a transaction, which is aborted at the end."""
    settings = {"group.id": group, "client.id": client, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (message := consumer.poll(1)) is None or message.error():
        assert time.monotonic() < deadline, "the member reads nothing"
    consumer.commit(message=message, asynchronous=False)
    transactional = {"transactional.id": transaction, "transaction.timeout.ms": 900_000}
    held = Producer({"bootstrap.servers": bootstrap, **transactional})
    held.init_transactions(PATIENCE_SECONDS)
    held.begin_transaction()
    yield held
    held.abort_transaction(PATIENCE_SECONDS)
    consumer.close()
