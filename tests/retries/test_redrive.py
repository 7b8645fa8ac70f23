"""Redrive against a broker: each dead letter once, whatever is chosen, and whenever it is killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from barnabas.embedded.broker import Broker
from barnabas.retries import forwarding
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.headers import REDRIVEN_FROM, FailureHeaders, write_failure
from barnabas.retries.record import Record
from barnabas.retries.redrive import (
    DeadLetter,
    DeadLetterReader,
    DeadLetterTopic,
    NoTarget,
    output_of,
    redrive,
    transactional_id,
)
from barnabas.retries.redriven import STATE_TOPIC
from tests.retries.mortal import Killed, Mortal
from tests.retries.records import committed, values

TARGETS = {"orders": 2}


class Cluster:
    """A dead-letter topic of two partitions, and its redrives."""

    def __init__(self, broker: Broker) -> None:
        self.bootstrap = broker.bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for topic, partitions in (("orders", 2), ("orders.dlq", 2), (STATE_TOPIC, 1)):
            broker.create_topic(topic, partitions=partitions)

    def bury(self, *values: str) -> None:
        """Write dead letters; the text before a dash is the error's class."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number, value in enumerate(values):
            failure = FailureHeaders("orders", number % 2, number, error=value.partition("-")[0])
            producer.produce("orders.dlq", value, "k", partition=number % 2, headers=list(write_failure(failure)))
        assert producer.flush(30) == 0

    def redrive(
        self, make: Callable[[dict[str, Any]], Any] = Producer, *, has_state: bool = True, **options: Any
    ) -> dict[str, int]:
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "redrive", **READER_SETTINGS})
        producer = make({"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id("orders.dlq")})
        topic = DeadLetterTopic("orders.dlq", "id-1", 2)
        try:
            return redrive(
                DeadLetterReader(reader, self._admin, has_state=has_state), producer, topic, TARGETS, **options
            )
        finally:
            reader.close()

    def back(self) -> list[str]:
        return sorted(values(committed(self.bootstrap, "orders", 2)))


@pytest.fixture
def cluster(barnabas: Broker) -> Cluster:
    return Cluster(barnabas)


def error_is(name: str) -> Callable[[DeadLetter], bool]:
    return lambda each: each.failure.error == name


@pytest.mark.slow
def test_each_dead_letter_is_sent_once(cluster: Cluster) -> None:
    cluster.bury("Late-0", "Odd-1", "Late-2", "Odd-3", "Late-4")
    assert cluster.redrive(chosen=error_is("Late"), limit=2) == {"orders": 2}
    assert cluster.redrive(chosen=error_is("Late")) == {"orders": 1}
    assert cluster.redrive(chosen=error_is("Late")) == {}
    assert cluster.back() == ["Late-0", "Late-2", "Late-4"]
    assert cluster.redrive() == {"orders": 2}, "what the filter left out"
    cluster.bury("Late-5")
    assert cluster.redrive() == {"orders": 1}
    assert cluster.back() == ["Late-0", "Late-2", "Late-4", "Late-5", "Odd-1", "Odd-3"]
    records = committed(cluster.bootstrap, "orders", 2)
    assert {each.partition for each in records if each.value == b"Odd-1"} == {1}, "the partition it came from"
    assert [each.headers for each in records if each.value == b"Odd-3"] == [((REDRIVEN_FROM, b"orders.dlq-1@1"),)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "moments",
    [pytest.param((1, 3, 5, 9, 10, 11, 20), id="quick"), pytest.param(range(30), id="all", marks=pytest.mark.long)],
)
def test_a_redrive_that_is_killed_is_continued(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, moments: Sequence[int]
) -> None:
    monkeypatch.setattr(forwarding, "_BATCH_RECORDS", 2)
    everything = [f"Late-{number}" for number in range(5)]
    cluster.bury(*everything)
    deaths: list[str] = []
    for moment in moments:
        try:
            cluster.redrive(lambda settings, moment=moment: Mortal(settings, moment))
        except Killed as death:
            deaths.append(str(death))
    cluster.redrive()
    calls = ("init_transactions", "begin_transaction", "produce", "commit_transaction")
    assert {f"after {name}" for name in calls} <= set(deaths)
    assert cluster.back() == everything
    assert cluster.redrive() == {}


@pytest.mark.slow
def test_letters_that_were_read_before_are_sent_once_too(cluster: Cluster) -> None:
    cluster.bury("Late-0", "Odd-1", "Late-2")
    kept: list[DeadLetter] = []
    assert cluster.redrive(chosen=lambda each: kept.append(each) or False) == {}  # type: ignore[func-returns-value]
    assert cluster.redrive(chosen=error_is("Odd")) == {"orders": 1}
    assert cluster.redrive(letters=kept) == {"orders": 2}
    assert cluster.redrive(letters=kept) == {}
    assert cluster.redrive() == {}
    assert cluster.back() == ["Late-0", "Late-2", "Odd-1"]


@pytest.mark.slow
def test_of_two_redrives_the_later_one_counts(cluster: Cluster) -> None:
    cluster.bury("Late-0", "Late-1")

    def overtaken(settings: dict[str, Any]) -> Any:
        producer = Producer(settings)
        begin = producer.begin_transaction

        class Slow:
            def __getattr__(self, name: str) -> Any:
                return getattr(producer, name)

            def begin_transaction(self) -> None:
                assert cluster.redrive() == {"orders": 2}
                begin()

        return Slow()

    with pytest.raises(Exception, match=r"(?i)fenced"):
        cluster.redrive(overtaken)
    assert cluster.back() == ["Late-0", "Late-1"]


def dead_letter(**failure: Any) -> DeadLetter:
    record = Record("orders.dlq", 1, 17, 5, b"k", b"v", (("trace", b"1"), (REDRIVEN_FROM, b"old")))
    return DeadLetter(record, FailureHeaders(**failure), 0, False)


def test_where_a_dead_letter_goes() -> None:
    headers = (("trace", b"1"), (REDRIVEN_FROM, b"orders.dlq-1@17"))
    known = output_of(dead_letter(topic="orders", partition=1), TARGETS, None)
    assert (known.topic, known.partition, known.headers) == ("orders", 1, headers)
    assert output_of(dead_letter(topic="orders", partition=7), TARGETS, None).partition is None
    assert output_of(dead_letter(topic="gone", partition=1), TARGETS, "orders").partition is None
    with pytest.raises(NoTarget, match=r"orders\.dlq-1@17: no topic gone"):
        output_of(dead_letter(topic="gone"), TARGETS, None)
    with pytest.raises(NoTarget, match=r"orders\.dlq-1@17: no source topic"):
        output_of(dead_letter(), TARGETS, None)
