"""`topic skew` on a real broker, with records of another project's client, which counts them exactly."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

from click.testing import CliRunner  # noqa: E402

import barnabas  # noqa: E402
from barnabas.cli.topic_skew import skew  # noqa: E402
from barnabas.client.admin import Admin, NewTopic  # noqa: E402
from tests.demo.test_online_retail import online_retail  # noqa: E402

PARTITIONS = 4
Records = Sequence[tuple[bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def broker() -> Any:
    with barnabas.Broker() as running:
        yield running


def produced(broker: Any, topic: str, records: Records, partitioner: str = "murmur2_random") -> list[Any]:
    """Produce records to a new topic, and return what a consumer of confluent-kafka reads of it."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    address = {"bootstrap.servers": broker.bootstrap_servers}
    producer = confluent_kafka.Producer({**address, "partitioner": partitioner, "linger.ms": 20})
    for number, (key, value) in enumerate(records):
        producer.produce(topic, value, key)
        producer.poll(0)
        if number % 50_000 == 0:
            producer.flush()
    producer.flush()
    consumer = confluent_kafka.Consumer({**address, "group.id": "exact"})
    consumer.assign([confluent_kafka.TopicPartition(topic, at, 0) for at in range(PARTITIONS)])
    found: list[Any] = []
    while len(found) < len(records):
        batch = consumer.consume(min(10_000, len(records) - len(found)), timeout=30)
        assert batch, "the consumer waits for records"
        found += batch
    consumer.close()
    return found


def run(broker: Any, topic: str, *arguments: str) -> Any:
    return CliRunner().invoke(skew, [topic, "-b", broker.bootstrap_servers, *arguments])


def report(broker: Any, topic: str, *arguments: str) -> dict[str, Any]:
    result = run(broker, topic, "--output", "json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def check(found: dict[str, Any], exact: list[Any]) -> None:
    """Compare a report with the records of the independent consumer."""
    by_partition = Counter(each.partition() for each in exact)
    size_bytes: Counter[int] = Counter()
    for each in exact:
        size_bytes[each.partition()] += len(each.key() or b"") + len(each.value() or b"")
    assert [each["records"] for each in found["partitions"]] == [by_partition[at] for at in range(PARTITIONS)]
    assert [each["bytes"] for each in found["partitions"]] == [size_bytes[at] for at in range(PARTITIONS)]
    keys = Counter((each.partition(), each.key()) for each in exact if each.key() is not None)
    shown = {(each["partition"], each["key"].encode()): each for each in found["keys"]}
    for where, each in shown.items():
        assert each["at_least"] <= keys[where] <= each["at_most"]
        assert each["at_most"] - each["at_least"] <= found["partitions"][where[0]]["error_records"]
    assert {where for where, count in keys.items() if count > found["partitions"][where[0]]["error_records"]} <= set(
        shown
    )


def orders(count: int) -> list[tuple[bytes, bytes]]:
    rng = random.Random(7)
    countries = rng.choices(
        ["United Kingdom", "Germany", "France", *map(str, range(97))], [700, 80, 40, *[2] * 97], k=count
    )
    return [(country.encode(), json.dumps({"invoice": rng.randrange(500)}).encode()) for country in countries]


def test_a_topic_with_a_hot_key(broker: Any) -> None:
    records = [*orders(5_000), (None, b"no key"), (b"France", None)]
    exact = produced(broker, "orders", records)
    found = report(broker, "orders", "--keys", "200", "--composite", "invoice")
    check(found, exact)
    assert (found["partitioner"], found["partitioner_share"]) == ("murmur2_random", 1)
    assert sum(each["without_key"] for each in found["partitions"]) == 1
    assert [key["key"] for key in found["keys"][:3]] == ["United Kingdom", "Germany", "France"]
    check(report(broker, "orders", "--keys", "200", "--counters", "10"), exact)


@pytest.mark.parametrize("partitioner", ["murmur2_random", "consistent_random"])
def test_what_a_plan_says_is_what_a_producer_gets(broker: Any, partitioner: str) -> None:
    topic = f"planned-{partitioner}"
    records = orders(3_000)
    produced(broker, topic, records, partitioner)
    found = report(broker, topic, "--salts", "3", "--composite", "invoice", "--hot", "10")
    assert found["partitioner"] == partitioner
    hot = {each["key"].encode() for each in found["keys"][: found["hot_keys"]]}
    assert b"United Kingdom" in hot
    taken: Counter[bytes | None] = Counter()
    salted: list[tuple[bytes | None, bytes | None]] = []
    for key, value in records:
        salted.append((b"%b-%d" % (key, taken[key] % 3) if key in hot else key, value))
        taken[key] += 1
    composed = [(b"%b:%d" % (key, json.loads(value)["invoice"]), value) for key, value in records]
    plans = {each["keys"]: each["records"] for each in found["plans"]}
    for name, sent in (("hot ones with 3 salts", salted), ("KEY:invoice", composed)):
        got = Counter(
            each.partition() for each in produced(broker, f"{topic}-{name[:3].strip(':')}", sent, partitioner)
        )
        assert plans[name] == [got[at] for at in range(PARTITIONS)], name


def test_a_range(broker: Any) -> None:
    produced(broker, "ranged", [(b"a", b"1")] * 10 + [(b"b", b"2")] * 5)
    found = report(broker, "ranged", "-o", "2:6")
    assert {each["key"]: each["at_most"] for each in found["keys"]}["a"] == 4


def test_what_is_wrong_is_one_sentence(broker: Any) -> None:
    produced(broker, "empty", [])
    for arguments, sentence in (
        (("empty",), "topic empty has no records in this range"),
        (("empty", "--salts", "1"), "'1' is not a number of salts: write --salts 2,4,8"),
        (("empty", "--partitioner", "random"), "'random' is not one of murmur2_random"),
        (("empty", "-o", "noon"), "'noon' is not a valid offset"),
    ):
        result = run(broker, *arguments)
        assert result.exit_code
        assert sentence in " ".join(result.stderr.split()), result.stderr


def test_producers_that_use_no_known_partitioner_are_told_apart(broker: Any) -> None:
    produced(broker, "scattered", [(b"k%d" % (number % 7), b"") for number in range(500)], "random")
    assert "of the counted records are where" in run(broker, "scattered").stderr


@pytest.mark.long
@pytest.mark.skipif(online_retail() is None, reason="the online-retail file is not here; set BARNABAS_ONLINE_RETAIL")
def test_the_real_lines(broker: Any) -> None:
    path = online_retail()
    assert path is not None
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = [(row["StockCode"].encode(), json.dumps(row).encode()) for row in csv.DictReader(file)]
    exact = produced(broker, "lines", lines)
    check(report(broker, "lines", "--keys", "10000", "--counters", "100"), exact)
