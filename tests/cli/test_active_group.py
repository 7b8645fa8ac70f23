"""A group with a running member: what describe and why show of it, and that its offsets are not moved under it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer

from barnabas.cli.group import group
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition
from tests.conform.brokers import broker

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.consumer.session.timeout.ms": "300000",
    "group.consumer.max.session.timeout.ms": "300000",
}
PROTOCOLS = [
    ("barnabas", "classic"),
    ("barnabas", "consumer"),
    pytest.param(("apache-kafka", "classic"), marks=pytest.mark.conform),
    pytest.param(("apache-kafka", "consumer"), marks=pytest.mark.conform),
]

PATIENCE_SECONDS = 60

pytestmark = pytest.mark.slow


@pytest.fixture(params=PROTOCOLS, ids="-".join)
def member(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A broker with one consumer of group g that has been given both partitions of topic t."""
    name, protocol = request.param
    with broker(name, tmp_path, SETTINGS) as running:
        address = running.bootstrap_servers
        with Admin(address) as admin:
            admin.create_topics([NewTopic("t", 2, 1)])
            admin.alter_group_offsets("g", {TopicPartition("t", 0): CommittedOffset(0)})
        settings: dict[str, Any] = {"group.id": "g", "client.id": "reader", "group.protocol": protocol}
        if protocol == "classic":
            settings["session.timeout.ms"] = 300_000
        consumer = Consumer({"bootstrap.servers": address, **settings})
        consumer.subscribe(["t"])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(consumer.assignment()) < 2:
            assert time.monotonic() < deadline, "the consumer is given nothing"
            consumer.poll(0.1)
        try:
            yield address, protocol
        finally:
            consumer.close()


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "-b", address])


def test_a_running_member(member: tuple[str, str]) -> None:
    address, protocol = member
    (described,) = json.loads(run(address, "describe", "g", "--output", "json").stdout)
    assert (described["state"], described["members"], described["type"]) == ("Stable", 1, protocol)
    assert described["balancer"] == ("range" if protocol == "classic" else "uniform")
    partitions: list[dict[str, Any]] = described["partitions"]
    assert [(each["topic"], each["partition"], each["lag"]) for each in partitions] == [("t", 0, 0), ("t", 1, None)]
    assert {each["client_id"] for each in partitions} == {"reader"}
    assert {each["host"] for each in partitions} == {"/127.0.0.1"}
    (shown,) = json.loads(run(address, "describe", "g", "--members", "--output", "json").stdout)
    assert [each["assignment"] for each in shown["members_list"]] == [["t-0", "t-1"]]
    assert "Stable" in run(address, "list", "--state", "Stable").stdout
    assert "Stable" not in run(address, "list", "--state", "Empty").stdout

    refused = run(address, "reset-offsets", "g", "--all-topics", "--to-latest", "--execute")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "error: group g is Stable with 1 member, which would overwrite new offsets (stop them first)\n"
    )
    for arguments in (("delete", "g"), ("delete", "g", "--dry-run")):
        kept = run(address, *arguments)
        assert kept.exit_code == 1
        assert kept.stderr == "error: group g still has members (stop its consumers first)\n"


def test_why(member: tuple[str, str], request: pytest.FixtureRequest) -> None:
    address, _ = member
    if "apache-kafka" in request.node.name:
        refused = run(address, "why", "g")
        assert refused.exit_code == 1
        assert "does not remember rebalances" in refused.stderr
        return
    (rebalance,) = json.loads(run(address, "why", "g", "--output", "json").stdout)
    assert rebalance["client_id"] == "reader"
    assert rebalance["members"] == 1
    assert not rebalance["superseded"]
    assert rebalance["ended_ms"] >= rebalance["started_ms"]
    assert rebalance["cause"] == f"member {rebalance['member_id']} joined"
    moved = [(each["topic"], each["partition"], each["from_member"], each["to_member"]) for each in rebalance["moved"]]
    assert moved == [("t", index, "", rebalance["member_id"]) for index in (0, 1)]

    lines = run(address, "why", "g", "--moves").stdout.splitlines()
    assert lines[0].split() == ["STARTED", "EPOCH", "TOOK-MS", "MEMBERS", "MOVED", "CLIENT-ID", "CAUSE"]
    assert lines[1].split()[1:6:3] == [str(rebalance["epoch"]), "2"]
    assert lines[3].split() == ["EPOCH", "TOPIC", "PARTITION", "FROM", "TO"]
    assert lines[4].split()[1:4] == ["t", "0", "-"]
    assert len(lines) == 6

    missing = run(address, "why", "nobody")
    assert missing.exit_code == 1
    assert "nobody not found" in missing.stderr
