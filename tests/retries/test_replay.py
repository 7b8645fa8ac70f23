"""A replay against a broker: it is killed at every moment between the calls of its producer, and each record is there once."""

from __future__ import annotations

from itertools import count

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.embedded.broker import Broker
from barnabas.retries import forwarding
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.pace import Pace
from barnabas.retries.replay import replay, stored_progress, transactional_id
from barnabas.retries.replayed import STATE_TOPIC, Progress
from tests.retries.mortal import Killed, Mortal
from tests.retries.records import committed, values, write


def run(bootstrap: str, moments: int | None = None, pace: Pace | None = None) -> Progress:
    """Send all values but "b" from orders to copy, and live for so many moments."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "replay", **READER_SETTINGS})
    try:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id("r")}
        forwarder = Forwarder(Mortal(settings, moments))  # type: ignore[arg-type]
        found = stored_progress(consumer, AdminClient({"bootstrap.servers": bootstrap}), "r")
        progress = found or Progress("r", "orders", "1", "copy", "2", "", {0: (0, 5)})
        replay(consumer, forwarder, progress, lambda each: None if each.value == b"b" else each, pace)
    finally:
        consumer.close()
    return progress


def prepare(broker: Broker) -> str:
    for topic in ("orders", "copy", STATE_TOPIC):
        broker.create_topic(topic, partitions=1)
    write(broker.bootstrap_servers, "orders", [(None, each) for each in "abcde"])
    return broker.bootstrap_servers


@pytest.mark.slow
def test_killed_at_every_moment(barnabas: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_BATCH_RECORDS", 2)
    bootstrap = prepare(barnabas)
    deaths = []
    for moments in count(1, 2):
        try:
            done = run(bootstrap, moments)
            break
        except Killed as moment:
            deaths.append(str(moment))
        # What comes after the first run's end is not part of the replay.
        write(bootstrap, "orders", [(None, "later")])
    assert len(deaths) > 5
    assert (done.read, done.written, done.is_finished) == (5, 4, True)
    assert values(committed(bootstrap, "copy")) == ["a", "c", "d", "e"]


@pytest.mark.slow
def test_what_is_due_is_sent_before_the_wait(barnabas: Broker) -> None:
    bootstrap = prepare(barnabas)
    there: list[list[str]] = []
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        there.append(values(committed(bootstrap, "copy")))

    run(bootstrap, pace=Pace(per_second=1, clock=lambda: now, sleep=sleep))
    assert there == [["a"], ["a", "c"], ["a", "c", "d"]]
    assert now == 3.0
