"""The examples with Spark: each answer is computed a second time in plain Python, from the same events."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition

from barnabas.client.admin import Admin
from barnabas.main import command_group
from tests.schemas.registry_server import running_registry
from tests.spark.session import SPARK, Topics, servers, spark, topics

pytestmark = SPARK

__all__ = ["servers", "spark", "topics"]

EXAMPLES = Path(__file__).parents[2] / "examples"
HALF_AN_HOUR_MS = 30 * 60_000
HOUR_MS = 60 * 60_000
NOON_MS = 1_795_003_200_000


class Event(NamedTuple):
    key: str
    value: str
    timestamp: int = NOON_MS


@pytest.fixture(scope="module", autouse=True)
def _examples_can_be_imported() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


def produced(topics: Topics, events: list[Event]) -> str:
    """Return a topic of three partitions with these events, in the order given."""
    topic = topics.create(partitions=3)
    topics.produce(topic, [event._asdict() for event in events])
    return topic


def read(spark: Any, topics: Topics, topic: str) -> Any:
    options = {"kafka.bootstrap.servers": topics.servers, "subscribe": topic}
    return spark.read.format("barnabas").options(**options).load()


@pytest.mark.conform
def test_hot_keys(spark: Any, topics: Topics) -> None:
    import hot_keys

    chance = random.Random(1)
    events = [
        Event("whale" if chance.random() < 0.7 else f"k{chance.randrange(50)}", str(chance.randrange(1000)))
        for _ in range(2000)
    ]
    rows = read(spark, topics, produced(topics, events)).cache()
    whale, sums = sum(event.key == "whale" for event in events), Counter[str]()
    for event in events:
        sums[event.key] += int(event.value)
    assert max(row.records for row in hot_keys.loads(rows).collect()) >= whale
    assert hot_keys.hottest(rows, 1).collect() == [("whale", whale)]
    before, after = hot_keys.task_loads(rows, 8), hot_keys.task_loads(rows, 8, salts=16)
    assert sum(before) == sum(after) == len(events)
    assert before[0] >= whale
    assert after[0] < before[0] / 2
    assert {row.key: row.amount for row in hot_keys.totals(rows, 16).collect()} == sums


@pytest.mark.conform
def test_event_sourcing(spark: Any, topics: Topics) -> None:
    import event_sourcing

    chance = random.Random(2)
    events = [Event(f"account {chance.randrange(9)}", str(chance.randrange(-900, 1000))) for _ in range(600)]

    def rebuilt(events: list[Event]) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for account, amount, _ in events:
            balance, count = found.get(account, (0, 0))
            after = balance + int(amount)
            found[account] = (after if after >= 0 else balance, count + 1)
        return found

    topic = produced(topics, events[:400])
    with Admin(topics.servers) as admin:
        admin.store_cut(topic, admin.take_cut([topic], now_ms=NOON_MS))
    topics.produce(topic, [event._asdict() for event in events[400:]])

    def balances(until: str) -> dict[str, tuple[int, int]]:
        rows = event_sourcing.balances(event_sourcing.events(spark, topics.servers, topic, until)).collect()
        return {row.account: (row.balance, row.events) for row in rows}

    assert balances("latest") == rebuilt(events)
    assert balances(f"cut:{topic}") == rebuilt(events[:400])
    topics.delete_before(topic, 1, 1)
    with pytest.raises(ValueError, match=rf"{topic}-1 begins at offset 1: its first events were deleted"):
        event_sourcing.events(spark, topics.servers, topic)


@pytest.mark.conform
def test_clickstream(spark: Any, topics: Topics) -> None:
    import clickstream

    chance = random.Random(3)
    pages = ["/", "/", "/product/1", "/product/17", "/cart", "/paid"]
    moments = sorted(NOON_MS + chance.randrange(6 * HOUR_MS) for _ in range(300))
    events = [Event(f"visitor {chance.randrange(20)}", chance.choice(pages), moment) for moment in moments]
    by_visitor = defaultdict(list)
    for event in events:
        by_visitor[event.key].append(event)
    visits: list[list[Event]] = []
    for clicks in by_visitor.values():
        visits.append([clicks[0]])
        for before, after in pairwise(clicks):
            if after.timestamp - before.timestamp >= HALF_AN_HOUR_MS:
                visits.append([])
            visits[-1].append(after)
    found = clickstream.visits(read(spark, topics, produced(topics, events))).cache()
    rows = found.selectExpr("visitor", "unix_millis(began)", "clicks").collect()
    assert sorted(map(tuple, rows)) == sorted((visit[0].key, visit[0].timestamp, len(visit)) for visit in visits)
    with_product = [visit for visit in visits if any(event.value.startswith("/product/") for event in visit)]
    with_cart = [visit for visit in with_product if any(event.value == "/cart" for event in visit)]
    paid = [visit for visit in with_cart if any(event.value == "/paid" for event in visit)]
    assert clickstream.funnel(found).collect() == [(len(visits), len(with_product), len(with_cart), len(paid))]


def test_leaderboard(spark: Any, topics: Topics) -> None:
    import leaderboard

    chance = random.Random(4)
    events = [
        Event(f"player {chance.randrange(12)}", str(chance.randrange(5)), NOON_MS + chance.randrange(3 * HOUR_MS))
        for _ in range(300)
    ]
    points: dict[int, Counter[str]] = defaultdict(Counter)
    for player, value, timestamp in events:
        points[timestamp // HOUR_MS][player] += int(value)
    expected = [
        (player, total, rank)
        for hour in sorted(points)
        for rank, player, total in sorted(
            (1 + sum(other > total for other in points[hour].values()), player, total)
            for player, total in points[hour].items()
        )
        if rank <= 3
    ]
    found = leaderboard.best(leaderboard.points(read(spark, topics, produced(topics, events)))).collect()
    assert [(row.player, row.points, row["rank"]) for row in found] == expected
    assert len({row.hour for row in found}) == len(points)


def avro_schema(name: str, **fields: Any) -> str:
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields.items()]}
    )


def consumed(topics: Topics, topic: str) -> list[Any]:
    """Return the messages that a topic of one partition has."""
    consumer = Consumer(
        {"bootstrap.servers": topics.servers, "group.id": "unused", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    found: list[Any] = []
    while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
        found += consumer.consume(1, 1)
    consumer.close()
    return found


@pytest.mark.conform
def test_checked_orders(spark: Any, topics: Topics, tmp_path: Path) -> None:
    """By a registry, and by a folder after it is gone; Confluent's clients write the orders and read the invoices."""
    import checked_orders
    from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    source, sink = topics.create(), topics.create()
    topics.create(name=f"{sink}.dlq")
    with running_registry() as registry:
        registry.add(f"{sink}-value", avro_schema("Invoice", id="long", total="long"))
        client = SchemaRegistryClient({"url": registry.url})
        naming = {"subject.name.strategy": topic_subject_name_strategy}
        write = AvroSerializer(
            client, avro_schema("Order", id="long", quantity="int", price=["null", "long"]), conf=naming
        )
        context = SerializationContext(source, MessageField.VALUE)
        orders = [{"id": each, "quantity": each, "price": 7 if each < 6 else None} for each in range(9)]
        values = [write(order, context) for order in orders]
        topics.produce(source, [{"value": value} for value in [*values, b"not framed"]])
        words = ["schemas", "pull", str(tmp_path), "--registry", registry.url]
        assert CliRunner().invoke(command_group(), words).exit_code == 0
        checked_orders.main(topics.servers, source, sink, registry.url)
        once = [each.value() for each in consumed(topics, sink)]
        context = SerializationContext(sink, MessageField.VALUE)
        invoices = [AvroDeserializer(client, conf=naming)(value, context) for value in once]
    assert invoices == [{"id": each, "total": 7 * each} for each in range(6)]
    checked_orders.main(topics.servers, source, sink, str(tmp_path))
    assert [each.value() for each in consumed(topics, sink)] == 2 * once
    bad = consumed(topics, f"{sink}.dlq")
    assert [each.value() for each in bad] == 2 * [*values[6:], b"not framed"]
    reasons = [dict(each.headers())["reason"].decode() for each in bad]
    assert "total" in reasons[0]
    assert "magic" in reasons[-1] or "schema" in reasons[-1]
