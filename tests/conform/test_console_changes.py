"""Each change of the console does to Apache Kafka what it does to barnabas: the same previews, results and sentences, by the same names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from starlette.testclient import TestClient

from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog
from barnabas.console.changes.table import CHANGES
from tests.conform.brokers import await_leaders, broker
from tests.console.forms import carry_out, lines, preview, upload

pytestmark = [pytest.mark.conform, pytest.mark.long]

PATIENCE_SECONDS = 60
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ACL = {"principal": "User:alice", "permission": "allow", "operation": "read", "resource": "topic", "name": "orders"}
ANY_ACL = {"principal": "User:alice", "permission": "", "operation": "", "resource": "", "name": ""}
PASSWORDS = {"password": "correct horse", "again": "correct horse"}
GROWN = {"topic-create": 2, "topic-grow": 4}
"""How many partitions lead after a step."""
STEPS: list[tuple[str, dict[str, str]]] = [
    ("topic-create", {"name": "orders", "partitions": "2", "configs": "retention.ms=60000000"}),
    ("topic-create", {"name": "orders"}),
    ("topic-create", {"name": "<script>"}),
    ("topic-create", {"name": "x" * 300}),
    ("topic-create", {"name": "many", "replication_factor": "5"}),
    ("topic-create", {"name": "wrong", "configs": "retention.ms=soon"}),
    ("topic-create", {"name": "unknown", "configs": "no.such=1"}),
    ("record-produce", {"topic": "orders", "key": "a", "value": "1", "headers": "h=v", "timestamp": "1795255200000"}),
    ("record-produce", {"topic": "orders", "partition": "0", "tombstone": "1", "timestamp": "1795255200000"}),
    ("record-produce", {"topic": "orders", "partition": "0", "value": "2", "timestamp": "1795255200000"}),
    ("record-produce", {"topic": "absent", "value": "1"}),
    ("topic-settings", {"name": "orders", "set": "cleanup.policy=compact", "delete": "retention.ms"}),
    ("topic-settings", {"name": "orders", "set": "segment.ms=-5"}),
    ("topic-settings", {"name": "absent", "set": "segment.ms=5000"}),
    ("topic-settings", {"name": "orders", "set": "cleanup.policy=delete"}),
    ("record-produce", {"topic": "orders", "partition": "1", "value": "x", "timestamp": "1795255200000"}),
    (
        "records-produce",
        {"topic": "orders", "lines": '{"key": "b", "value": "3", "partition": 1}\n{"value": "4", "partition": 0}'},
    ),
    ("records-produce", {"topic": "orders", "lines": '{"partition": 7}'}),
    (
        "records-file",
        {
            "topic": "orders",
            "file": '{"key_base64": "/w==", "value": null, "partition": 0}\n{"value": "5", "partition": 1}\n',
        },
    ),
    ("records-file", {"topic": "orders", "file": '{"value": "4"}\n{'}),
    ("record-again", {"topic": "orders", "partition": "0", "value": "2", "timestamp": "1795255200000"}),
    ("topic-create", {"name": "copy", "partitions": "2"}),
    ("replay", {"topic": "orders", "from": "start", "to": "copy", "filters": "key=b"}),
    ("replay", {"topic": "orders", "from": "start", "to": "copy", "filters": "key=b"}),
    ("replay", {"topic": "orders", "from": "no-cut", "to": "copy", "name": "other"}),
    ("dead-letter-redrive", {"topic": "absent.dlq"}),
    ("topic-grow", {"name": "orders", "partitions": "4"}),
    ("topic-grow", {"name": "orders", "partitions": "3"}),
    ("topic-trim", {"name": "orders", "partitions": "0", "before": "1"}),
    ("topic-trim", {"name": "orders", "before": "end"}),
    ("topic-trim", {"name": "orders", "before": "99"}),
    ("group-reset", {"id": "readers", "topics": "orders:0", "how": "--to-earliest"}),
    ("group-reset", {"id": "readers", "how": "--shift-by", "value": "1"}),
    ("group-reset", {"id": "readers", "topics": "absent", "how": "--to-latest"}),
    ("group-settings", {"name": "readers", "set": "consumer.session.timeout.ms=50000"}),
    ("group-delete-offsets", {"id": "readers", "topics": "orders"}),
    ("group-delete-offsets", {"id": "readers", "topics": "orders"}),
    ("group-delete", {"id": "others"}),
    ("group-delete", {"id": "absent"}),
    ("transaction-abort", {"id": "payments"}),
    ("transaction-abort", {"id": "absent"}),
    ("transaction-abort-hanging", {"partition": "orders:0", "start_offset": "1"}),
    ("broker-settings", {"name": "{broker}", "set": "log.cleaner.threads=2"}),
    ("broker-settings", {"name": "{broker}", "set": "log.cleaner.threads=none"}),
    ("broker-settings", {"name": "{broker}", "set": "no.such=1"}),
    ("quota-set", {"user": "alice", "client-id": "a", "quotas": "consumer_byte_rate=1000\nproducer_byte_rate=10"}),
    ("quota-set", {"default-ip": "1", "quotas": "connection_creation_rate=5"}),
    ("quota-set", {"ip": "not an address", "quotas": "connection_creation_rate=5"}),
    ("quota-delete", {"user": "alice", "client-id": "a"}),
    ("user-create", {"name": "alice", "mechanism": "SCRAM-SHA-512"}),
    ("user-create", {"name": "alice", "mechanism": "SCRAM-SHA-512"}),
    ("user-password", {"name": "alice", "iterations": "8000"}),
    ("user-delete", {"name": "alice"}),
    ("user-delete", {"name": "alice"}),
    ("acl-create", ACL),
    ("acl-create", {**ACL, "prefixed": "1", "permission": "deny", "host": "10.0.0.7"}),
    ("acl-delete", ANY_ACL),
    ("acl-delete", ANY_ACL),
    ("topic-delete", {"name": "orders"}),
    ("topic-delete", {"name": "orders"}),
]
"""Every change, what it rejects too; in this order."""


def test_every_change_is_here() -> None:
    assert {change for change, _ in STEPS} == {each.path for each in CHANGES}


def played(bootstrap: str, audit: Path) -> list[Any]:
    """Return what the console says at each step: status, error, preview, result."""
    found = []
    with Admin(bootstrap) as admin:
        node = admin.describe_cluster().brokers[0].id
        console = Console([AskedCluster("local", lambda: Admin(bootstrap))], audit=AuditLog(str(audit)))
        with TestClient(console.app(), base_url="http://localhost") as browser:
            for number, (change, fields) in enumerate(STEPS):
                if change == "transaction-abort" and fields["id"] == "payments":
                    held = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments"})
                    held.init_transactions(PATIENCE_SECONDS)
                    held.begin_transaction()
                    held.produce("orders", "open", partition=2)
                    held.flush(PATIENCE_SECONDS)
                if change == "group-delete" and fields["id"] == "others":
                    admin.alter_group_offsets("others", {TopicPartition("orders", 0): CommittedOffset(1, "")})
                named = {name: text.format(broker=node) if name == "name" else text for name, text in fields.items()}
                file = named.pop("file", None)
                shown = (
                    preview(browser, change, **named)
                    if file is None
                    else upload(browser, change, file.encode(), **named)
                )
                if shown.status == 200:
                    asks = PASSWORDS if shown.data["asks"] == ["password", "again"] else {}
                    done = carry_out(browser, shown, **asks)
                    said = [shown.rows, shown.data["destroys"], shown.data["notes"], done.status, done.error, done.rows]
                else:
                    said = [shown.status, shown.error]
                found.append([number, change, fields, *told(said, node)])
                if change in GROWN and shown.status == 200:
                    await_leaders(bootstrap, {"orders": GROWN[change]})
    assert {each["result"] for each in lines(audit)} >= {"begun", "done"}
    return found


def told(said: Any, node: int) -> Any:
    """Return the same without what differs between two clusters: ids of producers, the broker's own id."""
    if isinstance(said, dict):
        return {key: told(value, node) for key, value in said.items() if key != "producer_id"}
    if isinstance(said, list):
        return [told(each, node) for each in said]
    if said == str(node):
        return "{broker}"
    return said.replace(f"broker {node}", "broker {broker}") if isinstance(said, str) else said


def test_both_brokers_say_and_do_the_same(tmp_path: Path) -> None:
    ours, theirs = (
        played_on(name, tmp_path / name, tmp_path / f"{name}.jsonl") for name in ("barnabas", "apache-kafka")
    )
    assert [(mine, other) for mine, other in zip(ours, theirs, strict=True) if mine != other] == []


def played_on(name: str, folder: Path, audit: Path) -> list[Any]:
    with broker(name, folder, AUTHORIZER) as running:
        return played(running.bootstrap_servers, audit)
