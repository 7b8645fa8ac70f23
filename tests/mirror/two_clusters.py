"""Two brokers and the command between them, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable

from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer

from barnabas.cli.mirror import mirror
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from barnabas.embedded.broker import Broker
from barnabas.mirror.notes import STATE_TOPIC
from barnabas.retries.record import Record
from tests.retries.records import committed

SETTINGS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
}
BEGAN_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def fill(bootstrap: str, topic: str, numbers: Iterable[int], partitions: int = 2) -> None:
    """Write a record for each number, to the partitions in turn, an hour apart, some without a key and with headers."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        headers: list[tuple[str, str | bytes | None]] = [("h", b"1"), ("h", None)] if number % 2 else []
        key = None if number % 5 == 4 else f"k{number % 3}"
        time_ms = BEGAN_MS + number * HOUR_MS
        producer.produce(topic, f"{number}", key, partition=number % partitions, timestamp=time_ms, headers=headers)
    assert producer.flush(30) == 0


def fill_in_transaction(bootstrap: str, topic: str, values: Iterable[str], *, commit: bool, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "filler"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=partition)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.flush(30)
        producer.abort_transaction(30)


def commit_offsets(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit offsets of a group that has no members."""
    committed_offsets = {TopicPartition(topic, partition): CommittedOffset(each) for partition, each in offsets.items()}
    with Admin(bootstrap) as admin:
        assert set(admin.alter_group_offsets(group, committed_offsets).values()) == {None}


def without_offsets(records: Iterable[Record]) -> list[tuple[object, ...]]:
    """Return all of each record but its offset."""
    return [(each.partition, each.timestamp_ms, each.key, each.value, each.headers) for each in records]


def next_values(bootstrap: str, group: str, topic: str, count: int) -> list[str]:
    """Return the next values that a consumer of a group gets, and commit them."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    found: list[str] = []
    try:
        while len(found) < count:
            (message,) = consumer.consume(1, 30)
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found


class TwoClusters:
    """A source and a target."""

    def __init__(self, source: Broker, target: Broker) -> None:
        self.source, self.target = source, target
        self.addresses = source.bootstrap_servers, target.bootstrap_servers

    def run(self, *options: str) -> Result:
        return CliRunner().invoke(mirror, [*self.addresses, "--until-end", *options, "-o", "json"])

    def counts(self, *options: str) -> dict[str, tuple[int, int, int]]:
        """Mirror; return what was copied, what was dropped, and the lag of each topic."""
        result = self.run(*options)
        assert result.exit_code == 0, result.output
        return {each["topic"]: (each["copied"], each["dropped"], each["lag"]) for each in json.loads(result.stdout)}

    def refused(self, *options: str) -> str:
        result = self.run(*options)
        assert result.exit_code in (1, 2), result.output
        return result.stderr.splitlines()[-1]

    def copied(self, topic: str = "orders", partitions: int = 2) -> list[Record]:
        return committed(self.addresses[1], topic, partitions)

    def original(self, topic: str = "orders", partitions: int = 2) -> list[Record]:
        return committed(self.addresses[0], topic, partitions)

    def target_notes(self) -> list[Record]:
        return committed(self.addresses[1], STATE_TOPIC)
