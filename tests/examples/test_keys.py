"""What a key does: to the loads of partitions, and to the order of one entity's events."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer

from barnabas.client.salted_keys import SaltedKeys
from tests.examples.stage import EXAMPLES, PATIENCE_SECONDS, Stage
from tests.pages import blocks

pytestmark = pytest.mark.timeout(5 * PATIENCE_SECONDS)


@pytest.fixture
def spread_keys(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("spread_keys")


@pytest.fixture
def order_of_events(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("order_of_events")


def test_three_keys_spread_what_one_key_gathers(stage: Stage, spread_keys: Any) -> None:
    found = spread_keys.clicks(2000)
    wanted = Counter(click.ad for click in found)
    salts = SaltedKeys({spread_keys.HOT_AD: spread_keys.PARTITIONS * 2})
    largest: dict[str, int] = {}
    for name, key in spread_keys.choices().items():
        topic = f"{name}-{stage.name}"
        spread_keys.send(stage.bootstrap, topic, found, key)
        loads = spread_keys.loads(stage.bootstrap, topic)
        assert sum(loads) == len(found)
        largest[name] = max(loads)
        read = spread_keys.clicks_per_ad(
            stage.bootstrap, topic, lambda key: salts.original(key.split(b" ")[0]).decode()
        )
        assert read == wanted
    before = largest.pop("clicks-by-ad")
    assert before >= wanted[spread_keys.HOT_AD]
    assert all(after < before / 2 for after in largest.values()), largest


def test_events_of_one_order_in_two_partitions_and_in_one(stage: Stage, order_of_events: Any) -> None:
    happened = order_of_events.events(20)
    by = {key: f"orders-by-{key}-{stage.name}" for key in ("id", "order")}
    for key, topic in by.items():
        order_of_events.send(stage.bootstrap, topic, happened, key)
    ways = ((0, 1), (1, 0))
    assert all(order_of_events.open_orders(stage.bootstrap, by["id"], way) for way in ways)
    assert not any(order_of_events.open_orders(stage.bootstrap, by["order"], way) for way in ways)


def test_the_page_with_salts_runs_as_it_is_printed(stage: Stage) -> None:
    producer_block, *_ = blocks("docs/keys.md")
    topic = f"clicks-{stage.name}"
    exec(producer_block.replace("localhost:9092", stage.bootstrap).replace('"clicks"', repr(topic)), {})
    consumer = Consumer({"bootstrap.servers": stage.bootstrap, "group.id": stage.name, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    assert {consumer.poll(PATIENCE_SECONDS).key() for _ in range(3)} == {b"ad-1-0", b"ad-1-1", b"ad-2"}
    consumer.close()
