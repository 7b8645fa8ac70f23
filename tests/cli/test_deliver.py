"""`barnabas deliver` against a broker, as a process that is asked to end."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer

from barnabas.cli.deliver import deliver_
from barnabas.embedded.broker import Broker

PATIENCE_SECONDS = 60


@pytest.mark.slow
def test_a_record_that_is_due_is_delivered_and_one_without_a_time_is_a_dead_letter(barnabas: Broker) -> None:
    for topic in ("orders.delayed", "orders"):
        barnabas.create_topic(topic, partitions=1)
    producer = Producer({"bootstrap.servers": barnabas.bootstrap_servers})
    producer.produce("orders.delayed", "due", "k", headers=[("deliver-at", b"2026-11-21T10:00:00Z")], timestamp=1)
    producer.produce("orders.delayed", "no time")
    producer.produce("orders.delayed", "far", headers=[("deliver-at", b"2100-01-01")])
    assert producer.flush(30) == 0
    command = [sys.executable, "-m", "barnabas.main", "deliver", "orders.delayed", "--to", "orders"]
    process = subprocess.Popen([*command, "-b", barnabas.bootstrap_servers], stderr=subprocess.PIPE, text=True)
    try:
        found = {}
        settings = {
            "bootstrap.servers": barnabas.bootstrap_servers,
            "group.id": "looking",
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer({**settings, "topic.metadata.refresh.interval.ms": 500})
        consumer.subscribe(["orders", "orders.delayed.dlq", "orders.delayed.retry.7"])
        while len(found) < 3:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, found
            if not message.error():
                found[message.topic()] = message
        consumer.close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, errors) == (143, "")
    assert {topic: message.value() for topic, message in found.items()} == {
        "orders": b"due",
        "orders.delayed.dlq": b"no time",
        "orders.delayed.retry.7": b"far",
    }
    assert (found["orders"].key(), found["orders"].headers()) == (b"k", [("deliver-at", b"2026-11-21T10:00:00Z")])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "error: topic nowhere does not exist (create it, and produce what shall wait to it)"),
        (["orders.delayed", "--to", "nowhere"], "error: topic nowhere does not exist (name another with --to)"),
        (
            ["orders.delayed", "--to", "orders.delayed"],
            "error: records of orders.delayed wait there, and cannot be delivered there",
        ),
    ],
)
def test_a_mistaken_topic_is_one_sentence(barnabas: Broker, arguments: list[str], error: str) -> None:
    barnabas.create_topic("orders.delayed", partitions=1)
    result = CliRunner().invoke(deliver_, [*arguments, "-b", barnabas.bootstrap_servers])
    assert result.exit_code == 1
    assert result.stderr.startswith(error)
    assert result.stderr.count("\n") == 1
