"""Each choice of `docs/demo.md`, asserted. The words in quotes are the chapter headings of that page."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker, Cluster
from barnabas.client.admin import Admin, results
from barnabas.client.configs import ConfigResource, ResourceType
from barnabas.demo.events import ShopEvents
from barnabas.demo.generator import generate_lines
from barnabas.demo.order_services import SERVICES, group_of
from barnabas.demo.shop import DAY_MS, INVENTORY, ORDERS, PAYMENTS, SENT, TOPICS, Guarantee, create_topics
from barnabas.demo.shop_broker import ShopBroker

SECONDS_A_DAY = 86_400

ASSIGNED = {
    "orders": (50_000, {"order.created", "order.updated", "order.cancelled"}),
    "payments": (100_000, {"payment.initiated", "payment.completed", "payment.failed"}),
    "inventory": (200_000, {"stock.updated", "stock.reserved", "stock.released"}),
}
"""What the assignment asks for, in its words: events a day, and their kinds."""
READERS_OF_ORDERS = {"fulfilment", "analytics", "notifications"}
ARTICLES = 50_000


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_each_kind_of_event_that_is_asked_for_is_there(plan):
    _, kinds = ASSIGNED[plan.name]
    assert kinds <= set(plan.events)
    assert set(plan.events) - kinds <= {"payment.refunded"}, "the shop's own data has refunds, too"


def test_three_services_read_orders():
    assert {"analytics", *SERVICES} == READERS_OF_ORDERS
    assert len({group_of(name) for name in SERVICES}) == len(SERVICES)


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_the_partitions_have_room_for_the_events_that_are_asked_for(plan):
    """The busiest second of a day has ten times its mean; the page counts 10,000 events a second for a partition."""
    events_a_day, _ = ASSIGNED[plan.name]
    assert 10 * events_a_day / SECONDS_A_DAY < 10_000 * plan.partitions
    assert plan.partitions <= 12, "no room to waste"


def test_the_page_has_the_figures_of_the_assignment():
    page = (Path(__file__).parents[2] / "docs" / "demo.md").read_text()
    for events_a_day, kinds in ASSIGNED.values():
        assert f"{events_a_day:,}" in page
        assert all(f"`{each}`" in page for each in kinds)
    assert f"{ARTICLES:,} articles" in page
    for name in READERS_OF_ORDERS:
        assert name in page.split("### `orders`")[1].split("\n### ")[0]


def test_orders_key():
    """An order's lines and its cancellation must be read in order; orders among each other need not be."""
    assert ORDERS.key == "order"


def test_orders_partitions():
    """Three services read, each with at most two workers: 50,000 a day is less than one a second."""
    assert ORDERS.partitions == 6
    assert ORDERS.partitions % 3 == 0


def test_orders_guarantee():
    """Readers put order and line together and so recognise a repeated event; nothing is paid for what they can do."""
    assert ORDERS.guarantee is Guarantee.AT_LEAST_ONCE


def test_orders_retention():
    """A new service replays a month; older orders live in the tables that were made of them."""
    assert (ORDERS.cleanup_policy, ORDERS.retention_ms) == ("delete", 30 * DAY_MS)


def test_payments_key():
    """Payments must be processed in order per transaction."""
    assert PAYMENTS.key == "payment"


def test_payments_partitions():
    """As many as orders have, so that a join of the two needs no more tasks than either."""
    assert PAYMENTS.partitions == ORDERS.partitions == 6


def test_payments_guarantee():
    assert PAYMENTS.guarantee is Guarantee.EXACTLY_ONCE


def test_payments_retention():
    """Every event of a payment is evidence, so none may replace another; disputes come for months."""
    assert (PAYMENTS.cleanup_policy, PAYMENTS.retention_ms) == ("delete", 180 * DAY_MS)


def test_inventory_key():
    """The warehouse must see all events for a given article in order."""
    assert INVENTORY.key == "stock_code"


def test_inventory_partitions():
    """Four times the events of orders, twice the partitions; 12 divides among 2, 3, 4 and 6 workers."""
    assert INVENTORY.partitions == 2 * ORDERS.partitions == 12
    assert all(INVENTORY.partitions % workers == 0 for workers in (2, 3, 4, 6))


def test_inventory_guarantee():
    assert INVENTORY.guarantee is Guarantee.EXACTLY_ONCE


def test_inventory_retention():
    """The latest level of every article, for ever, and every movement of the last day."""
    assert (INVENTORY.cleanup_policy, INVENTORY.retention_ms) == ("compact", -1)
    assert INVENTORY.config["min.compaction.lag.ms"] == str(DAY_MS)


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_no_topic_gets_events_twice_from_its_producer(plan):
    assert plan.producer_config["enable.idempotence"] == "true"
    assert plan.producer_config["acks"] == "all"


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_keys_are_placed_as_java_clients_place_them(plan):
    """Otherwise a service in another language would put the same key into another partition, and order would be
    lost."""
    assert plan.producer_config["partitioner"] == "murmur2_random"


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_the_configuration_has_kafkas_names(plan):
    assert plan.config["cleanup.policy"] == plan.cleanup_policy
    assert plan.config["retention.ms"] == str(plan.retention_ms)


def replicas_of_each_topic(bootstrap_servers: str) -> set[tuple[int, str | None]]:
    """Create the topics; return their numbers of replicas with min.insync.replicas."""
    create_topics(ShopBroker(bootstrap_servers))
    found = set()
    with Admin(bootstrap_servers) as admin:
        for name, topic in results(admin.describe_topics([*(plan.name for plan in TOPICS), *SENT])).items():
            resource = ConfigResource(ResourceType.TOPIC, name)
            (configs,) = results(admin.describe_configs([resource])).values()
            in_sync = next(each.value for each in configs if each.name == "min.insync.replicas")
            found |= {(len(partition.replicas), in_sync) for partition in topic.partitions}
    return found


@pytest.mark.slow
def test_two_of_three_nodes_have_what_is_acknowledged():
    with Cluster(3) as cluster:
        assert replicas_of_each_topic(cluster.bootstrap_servers) == {(3, "2")}


def test_one_node_has_what_is_acknowledged():
    with Broker() as broker:
        assert replicas_of_each_topic(broker.bootstrap_servers) == {(1, "1")}


@pytest.mark.parametrize("plan", TOPICS, ids=lambda plan: plan.name)
def test_the_page_argues_for_each_choice(plan):
    page = (Path(__file__).parents[2] / "docs" / "demo.md").read_text()
    section = page.split(f"### `{plan.name}`")[1].split("\n### ")[0].split("\n## ")[0]
    for heading in ("**Key**", "**Partitions**", "**Guarantee**", "**Retention**"):
        assert heading in section
    assert f"{plan.partitions} partitions" in section
    assert plan.guarantee.value in section.lower()


def test_events_are_of_the_kinds_the_topics_are_for():
    kinds: dict[str, set[str]] = {plan.name: set() for plan in TOPICS}
    shop = ShopEvents()
    import json

    for line in generate_lines(20_000):
        for event in shop.line(line):
            kinds[event.topic].add(json.loads(event.value)["event"])
    assert kinds == {plan.name: set(plan.events) for plan in TOPICS}
