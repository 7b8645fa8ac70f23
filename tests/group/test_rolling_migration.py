"""A running group of librdkafka consumers goes from the classic to the consumer protocol and back, one member at a time.

Records are produced all the while. Every record is read, none twice: members commit what they have read before they give a partition back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import broker

PARTITIONS = 6
PATIENCE_SECONDS = 240
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
}

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]


class Rolling:
    """One group, whose members are replaced while it reads."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.seen: Counter[tuple[int, int]] = Counter()
        self.members: dict[str, Consumer] = {}
        self.produced = 0
        self.producer = Producer({"bootstrap.servers": address})
        self.admin = AdminClient({"bootstrap.servers": address})
        self.admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(30)

    def join(self, name: str, protocol: str) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.address,
            "group.id": "g",
            "client.id": name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if protocol == "classic":
            # Not cooperative-sticky: the user data it now and then adds would be lost, so a group with it is not taken over.
            settings |= {
                "partition.assignment.strategy": "range",
                # Nobody is missed here, all leave: a member must not be put out while it is held up.
                "session.timeout.ms": 45_000,
                "heartbeat.interval.ms": 200,
            }
        consumer = Consumer(settings)
        consumer.subscribe(["t"], on_revoke=lambda consumer, partitions: self.commit(consumer))
        self.members[name] = consumer

    @staticmethod
    def commit(consumer: Consumer) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                if "_NO_OFFSET" in str(error):
                    return
                # What could not be committed now would be read twice.
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def leave(self, name: str) -> None:
        self.members.pop(name).close()

    def poll(self) -> None:
        self.producer.produce("t", b"r", partition=self.produced % PARTITIONS)
        self.produced += 1
        self.producer.poll(0)
        for consumer in self.members.values():
            message = consumer.poll(0.01)
            if message is not None and message.error() is None:
                self.seen[message.partition(), message.offset()] += 1

    def settle(self) -> None:
        """Read until the members share the partitions evenly."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        share = PARTITIONS // len(self.members)
        while time.monotonic() < deadline:
            self.poll()
            held = [len(consumer.assignment()) for consumer in self.members.values()]
            if held == [share] * len(self.members):
                return
        raise AssertionError({name: len(consumer.assignment()) for name, consumer in self.members.items()})

    def type(self) -> str:
        described = self.admin.describe_consumer_groups(["g"])["g"].result(30)
        return str(described.type.name).lower()

    def drain(self) -> None:
        self.producer.flush(30)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.seen) < self.produced and time.monotonic() < deadline:
            for consumer in self.members.values():
                message = consumer.poll(0.05)
                if message is not None and message.error() is None:
                    self.seen[message.partition(), message.offset()] += 1


# Apache Kafka shows that the test demands only what Kafka promises; that does not change from run to run.
@pytest.fixture(params=["barnabas", pytest.param("apache-kafka", marks=pytest.mark.long)])
def rolling(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rolling]:
    with broker(request.param, tmp_path, SETTINGS) as running:
        group = Rolling(running.bootstrap_servers)
        yield group
        for name in list(group.members):
            group.leave(name)


def test_both_ways(rolling: Rolling) -> None:
    rolling.join("old-1", "classic")
    rolling.join("old-2", "classic")
    rolling.settle()
    assert rolling.type() == "classic"

    rolling.join("new-1", "consumer")
    rolling.settle()
    assert rolling.type() == "consumer"
    rolling.leave("old-1")
    rolling.settle()
    rolling.leave("old-2")
    rolling.join("new-2", "consumer")
    rolling.settle()
    assert rolling.type() == "consumer"

    rolling.leave("new-1")
    rolling.join("old-3", "classic")
    rolling.settle()
    assert rolling.type() == "consumer"
    rolling.leave("new-2")
    rolling.join("old-4", "classic")
    rolling.settle()
    assert rolling.type() == "classic"

    rolling.drain()
    assert len(rolling.seen) == rolling.produced
    assert set(rolling.seen.values()) == {1}
