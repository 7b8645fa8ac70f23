"""Each page of the console shows a cluster of Apache Kafka as it shows one of barnabas: the same JSON, with the same names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from starlette.testclient import TestClient

from barnabas.client.admin import Admin, NewTopic
from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from tests.conform.brokers import await_leaders, broker

pytestmark = [pytest.mark.conform, pytest.mark.long]

PATIENCE_SECONDS = 60
ADDRESSES = [
    "", "topics", "topic?name=orders", "topic?name=absent", "groups", "group?id=readers", "group?id=absent", "transactions", "cluster",
    "messages?topic=orders", "messages?topic=orders&isolation_level=read_uncommitted", "record?topic=orders&partition=0&offset=0",
]  # fmt: skip
ONLY_OURS = {("group?id=readers", "rebalances")}
"""Only barnabas remembers rebalances."""


def pages_of(name: str, folder: Path) -> dict[str, Any]:
    """Return the JSON of every page, by address; the HTML is looked at here."""
    with broker(name, folder) as running:
        bootstrap = running.bootstrap_servers
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
        await_leaders(bootstrap, {"orders": 2})
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("orders", "1", partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        settings = {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe(["orders"])
        while (message := consumer.poll(PATIENCE_SECONDS)) is None or message.error():
            pass
        consumer.commit(message=message, asynchronous=False)
        held = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments"})
        held.init_transactions(PATIENCE_SECONDS)
        held.begin_transaction()
        held.produce("orders", "open", partition=1)
        held.flush(PATIENCE_SECONDS)
        cluster = AskedCluster("local", lambda: Admin(bootstrap))
        with TestClient(Console([cluster]).app(), base_url="http://localhost") as browser:
            found = {}
            for address in ADDRESSES:
                assert "<h1>" in browser.get(f"/clusters/local/{address}").text
                accepting = {"accept": "application/json"}
                found[address] = browser.get(f"/clusters/local/{address}", headers=accepting).json()
        held.abort_transaction(PATIENCE_SECONDS)
        consumer.close()
        return found


def names(value: Any, where: str = "") -> set[str]:
    """Return the paths of all fields, and of sentences in the place of data."""
    if isinstance(value, dict):
        return {each for key, inner in value.items() for each in names(inner, f"{where}.{key}".lstrip("."))} | {where}
    if isinstance(value, list):
        return {each for inner in value for each in names(inner, f"{where}[]")}
    return {where}


def check(pages: dict[str, Any]) -> None:
    assert pages[""]["health"]["brokers"] == 1
    assert [each["group"] for each in pages["groups"]["groups"]] == ["readers"]
    assert pages["group?id=readers"]["group"]["total_lag"] == 0
    assert pages["transactions"]["held_back"][0]["transactional_id"] == "payments"
    assert pages["topic?name=orders"]["sizes"]["records"] == 2
    assert pages["topic?name=absent"]["summary"]["error"].startswith("Topic absent does not exist")
    assert pages["group?id=absent"]["group"]["error"].startswith("Group absent does not exist")
    assert all(each["documentation"] for each in pages["topic?name=orders"]["configs"])
    failed = {(address, key) for address, page in pages.items() for key, part in page.items() if "error" in names(part)}
    # Without a group there is nothing that its coordinator could remember.
    missing = {("topic?name=absent", "summary"), ("group?id=absent", "group")}
    assert failed - missing <= ONLY_OURS


def test_both_brokers_have_the_same_pages(tmp_path: Path) -> None:
    ours, theirs = (pages_of(name, tmp_path / name) for name in ("barnabas", "apache-kafka"))
    check(ours)
    check(theirs)
    for address, page in ours.items():
        for key in [each for each in page if (address, each) not in ONLY_OURS]:
            different = names(page[key]) ^ names(theirs[address][key])
            # A list of problems, or of replicas in a directory, may be empty.
            assert {each for each in different if not each.startswith(("problems", "[].replicas[]"))} == set()
