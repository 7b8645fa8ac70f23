"""`barnabas plan --topic`: the figures of a topic that exists, and the verdict on it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.embedded.broker import Broker
from tests.cli.test_commands import run

pytestmark = pytest.mark.slow


def produce(broker: Broker, partition: int, records: int, age_s: float) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(records):
        when_ms = int((time.time() - age_s) * 1000)
        producer.produce("orders", b"x" * 1000, partition=partition, timestamp=when_ms)
    assert producer.flush(20) == 0


def planned(broker: Broker, *arguments: str) -> Any:
    result = run("plan", "--topic", "orders", "-b", broker.bootstrap_servers, "-o", "json", *arguments)
    return json.loads(result.stdout)


def verdicts(data: Any) -> dict[str, str]:
    return {each["topic"]: each["verdict"] for each in data["topic"]["verdicts"]}


def test_the_rate_is_that_of_the_window(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=2, config={"retention.ms": "-1", "segment.bytes": "104857600"})
    produce(barnabas, 0, 300, age_s=7200)
    produce(barnabas, 0, 360, age_s=60)
    produce(barnabas, 1, 720, age_s=60)
    data = planned(barnabas, "--retention", "1d")
    topic = data["topic"]
    assert topic["record_size"] == pytest.approx(1010, rel=0.02)
    assert topic["rate"] == pytest.approx(1080 * topic["record_size"] / 3600, rel=0.01)
    assert topic["busiest"] == pytest.approx(topic["rate"] * 2 / 3, rel=0.01)
    assert (topic["partitions"], topic["replicas"], topic["brokers"], topic["retention_s"]) == (2, 1, 1, None)
    disk = next(each["value"] for each in data["figures"] if each["name"] == "disk")
    assert disk == pytest.approx(topic["rate"] * 86_400 + 104_857_600, rel=0.001)


def test_a_topic_younger_than_the_window_has_the_rate_of_its_life(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=1)
    produce(barnabas, 0, 600, age_s=100)
    topic = planned(barnabas)["topic"]
    assert topic["rate"] == pytest.approx(6 * topic["record_size"], rel=0.1)


def test_verdicts(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=2)
    produce(barnabas, 0, 100, age_s=10)
    assert set(verdicts(planned(barnabas)).values()) == {"enough"}
    found = verdicts(planned(barnabas, "--consumers", "5", "-r", "3", "--partition-rate", "1kB/s"))
    assert found["partitions"].startswith("too few: `barnabas topic alter orders -p ")
    assert found["replicas"] == "too few: a broker's death loses records"
    assert found["brokers"] == "too few"
    assert found["busiest partition"] == "too hot: look for uneven keys"


def test_a_topic_that_says_too_little(barnabas: Broker) -> None:
    barnabas.create_topic("orders", partitions=1, config={"retention.ms": "-1"})
    where = ("-b", barnabas.bootstrap_servers)
    assert run("plan", "--topic", "orders", *where).stderr == (
        "error: topic orders got no record within the window"
        " (--window 7d looks further back, and --rate gives a rate)\n"
    )
    produce(barnabas, 0, 1, age_s=10)
    assert run("plan", "--topic", "orders", *where).stderr == (
        "error: topic orders keeps records for ever (--retention says how many days to plan for)\n"
    )
    assert "did you mean orders?" in run("plan", "--topic", "ordrs", *where).stderr
