"""Access control lists through the wire, `kafka-acls` and `barnabas acl`: barnabas and Apache Kafka answer alike.

Left out: what only 4.4 has (ranges, an empty host), and creations with ANY, at which Kafka's parser fails with the whole request.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.security.acls import AclBinding, AclFilter, PatternType
from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.conform.card.results import OURS, THEIRS
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(200)]

SETTINGS = {
    "node.id": "1",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
RULE = AclBinding(2, "orders", 3, "User:alice", "*", 3, 3)
WRONG = [
    RULE._replace(resource_type=4),
    RULE._replace(resource_name=""),
    RULE._replace(resource_type=99),
    RULE._replace(pattern_type=99),
    RULE._replace(operation=99),
    RULE._replace(permission_type=99),
    RULE._replace(principal="alice"),
]
SCRIPT = [
    ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"),
    ("--add", "--allow-principal", "User:bob", "--producer", "--topic", "ord", "--resource-pattern-type", "prefixed"),
    ("--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.7", "--operation", "All", "--group", "*"),
    ("--add", "--allow-principal", "User:CN=a,O=b", "--operation", "DescribeConfigs", "--cluster"),
    ("--add", "--allow-principal", "User:t", "--operation", "TwoPhaseCommit", "--transactional-id", "t"),
    ("--list",),
    ("--list", "--topic", "orders", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:bob"),
    ("--remove", "--force", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders"),
    ("--remove", "--force", "--group", "*"),
    ("--list",),
    ("--add", "--allow-principal", "nobody", "--operation", "Read", "--topic", "orders"),
]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("acls")
    made = {
        OURS: BarnabasProcess(folder / "ours", settings=SETTINGS),
        THEIRS: KafkaProcess(folder / "theirs", settings=SETTINGS),
    }
    try:
        for each in made.values():
            each.start()
        yield {name: each.bootstrap_servers for name, each in made.items()}
    finally:
        for each in made.values():
            each.stop()


def test_wrong_creations_get_the_same_answers(brokers: dict[str, str]) -> None:
    found = {}
    for name, address in brokers.items():
        with Admin(address) as admin:
            errors = admin.create_acls([*WRONG, RULE, RULE])
            found[name] = [error and (error.code.name, error.message) for error in errors]
            assert admin.list_acls(AclFilter()) == [RULE]
            assert admin.delete_acls(AclFilter()) == [RULE]
            assert admin.delete_acls(AclFilter(pattern_type=PatternType.MATCH)) == []
    assert found[OURS] == found[THEIRS]
    assert found[OURS][-2:] == [None, None]
    assert None not in found[OURS][:-2]


def test_the_tool_prints_the_same(brokers: dict[str, str], tmp_path: Path) -> None:
    tools = ToolProcess(tmp_path / "tools.log")
    try:
        for arguments in SCRIPT:
            outputs = {
                name: sorted(
                    tools.run("acls", "--bootstrap-server", address, *arguments).replace(address, "").splitlines()
                )
                for name, address in brokers.items()
            }
            assert outputs[OURS] == outputs[THEIRS], arguments
            assert len(outputs[OURS]) > 1
    finally:
        tools.close()


@pytest.mark.parametrize("name", [OURS, THEIRS])
def test_our_commands_work_on_both(brokers: dict[str, str], name: str) -> None:
    def run(*arguments: str) -> list[dict[str, object]]:
        command = [sys.executable, "-m", "barnabas.main", "acl", *arguments, "-b", brokers[name], "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows: list[dict[str, object]] = json.loads(done.stdout)
        return rows

    create = ("create", "--topic", "sales", "--operation", "read", "--allow-principal", "User:alice")
    assert [row["status"] for row in run(*create)] == ["created"]
    deny = (
        "create",
        "--topic",
        "sal",
        "--prefixed",
        "--operation",
        "all",
        "--deny-principal",
        "User:*",
        "--host",
        "::1",
    )
    assert [row["host"] for row in run(*deny)] == ["0:0:0:0:0:0:0:1"]
    question = ("explain", "--topic", "sales", "--operation", "describe", "--principal", "User:alice", "--host")
    assert [(row["decision"], row["name"]) for row in run(*question, "10.0.0.7")] == [("ALLOWED", "sales")]
    assert [(row["decision"], row["name"]) for row in run(*question, "::1")] == [("DENIED", "sal")]
    assert len(run("list", "--topic", "sales", "--resource-pattern-type", "match")) == 2
    assert len(run("delete", "--topic", "sales", "--resource-pattern-type", "match")) == 2
    assert run("list", "--topic", "sales", "--resource-pattern-type", "match") == []
