"""A broker in this process for all tests of the room, with two topics, a group, and a transaction that stays open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin
from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog

PATIENCE_SECONDS = 60
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
HOSTILE = '<script>alert("1")</script>'
"""A group, a client and a transactional id are named so."""


def cluster_at(bootstrap: str, name: str = "local", timeout_ms: int = 5_000) -> AskedCluster:
    return AskedCluster(name, lambda: Admin(bootstrap, timeout_ms=timeout_ms))


@pytest.fixture(scope="package")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as broker:
        broker.create_topic("orders", partitions=2)
        for number in range(60):
            broker.create_topic(f"many-{number:02}")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": HOSTILE})
        for number in range(5):
            producer.produce("orders", str(number), partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        reader = {"group.id": HOSTILE, "client.id": HOSTILE, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "enable.auto.commit": False, **reader})
        consumer.subscribe(["orders"])
        while (message := consumer.poll(PATIENCE_SECONDS)) is None or message.error():
            pass
        consumer.commit(message=message, asynchronous=False)
        transactional = {"transactional.id": HOSTILE, "transaction.timeout.ms": 900_000}
        held = Producer({"bootstrap.servers": broker.bootstrap_servers, **transactional})
        held.init_transactions(PATIENCE_SECONDS)
        held.begin_transaction()
        held.produce("orders", "open", partition=1)
        held.flush(PATIENCE_SECONDS)
        yield broker
        held.abort_transaction(PATIENCE_SECONDS)
        consumer.close()


@pytest.fixture(scope="package")
def browser(broker: barnabas.Broker) -> Iterator[TestClient]:
    """A browser on a console without a login."""
    console = Console([cluster_at(broker.bootstrap_servers)])
    with TestClient(console.app(), base_url="http://localhost", follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="package")
def records_broker() -> Iterator[barnabas.Broker]:
    """A broker for tests that write records; the other one's topics are counted."""
    with barnabas.Broker(config={"message.max.bytes": 50_000_000}) as broker:
        yield broker


@pytest.fixture(scope="package")
def records_browser(records_broker: barnabas.Broker) -> Iterator[TestClient]:
    """A browser on a console of that broker."""
    console = Console([cluster_at(records_broker.bootstrap_servers)])
    with TestClient(console.app(), base_url="http://localhost", follow_redirects=False) as client:
        yield client


@pytest.fixture
def nowhere() -> Iterator[TestClient]:
    """A browser on a console whose cluster is down."""
    with TestClient(Console([cluster_at("127.0.0.1:1", timeout_ms=500)]).app(), base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="package")
def changed() -> Iterator[barnabas.Broker]:
    """The broker."""
    with barnabas.Broker(config=AUTHORIZER) as broker:
        yield broker


@pytest.fixture(scope="package")
def admin(changed: barnabas.Broker) -> Iterator[Admin]:
    with Admin(changed.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(scope="package")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit log of the console."""
    return tmp_path_factory.mktemp("console") / "audit.jsonl"


@pytest.fixture(scope="package")
def writer(changed: barnabas.Broker, audit: Path) -> Iterator[TestClient]:
    """A browser on a console that may change the broker."""
    console = Console([cluster_at(changed.bootstrap_servers)], audit=AuditLog(str(audit)))
    with TestClient(console.app(), base_url="http://localhost", follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="package")
def nowhere_to_write() -> Iterator[TestClient]:
    """A browser on a console that may change a cluster which is down."""
    cluster = cluster_at("127.0.0.1:1", timeout_ms=200)
    with TestClient(Console([cluster], audit=AuditLog()).app(), base_url="http://localhost") as client:
        yield client
