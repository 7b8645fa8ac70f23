"""`barnabas acl`: which rules a command line names, and which rule decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.cli.acl import acl
from barnabas.cli.session import Session
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.security.acls import AclBinding, AclFilter, AclOperation, PatternType, Permission, ResourceType

RULE = AclBinding(
    ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", AclOperation.READ, Permission.ALLOW
)
DENIAL = RULE._replace(
    resource_name="ord", pattern_type=PatternType.PREFIXED, host="10.0.0.0/8", permission_type=Permission.DENY
)


class Cluster:
    """An administrative client of a cluster that has these ACLs."""

    def __init__(self, *acls: AclBinding) -> None:
        self.acls = list(acls)
        self.error: KafkaError | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def list_acls(self, wanted: AclFilter) -> list[AclBinding]:
        if self.error is not None:
            raise self.error
        return [each for each in self.acls if wanted.matches(each)]

    def create_acls(self, acls: Sequence[AclBinding]) -> list[KafkaError | None]:
        self.acls += acls
        return [self.error] * len(acls)

    def delete_acls(self, wanted: AclFilter) -> list[AclBinding]:
        found = self.list_acls(wanted)
        self.acls = [each for each in self.acls if each not in found]
        return found


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(RULE, DENIAL)
    monkeypatch.setattr(Session, "admin", lambda *_, **__: made)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(acl, [*arguments, "-o", "json"])


def rows(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_list_selects_by_resource_and_pattern(cluster: Cluster) -> None:
    assert [row["name"] for row in rows("list")] == ["orders", "ord"]
    assert [row["name"] for row in rows("list", "--topic", "orders")] == ["orders"]
    matching = rows("list", "--topic", "orders", "--resource-pattern-type", "match")
    assert [(row["name"], row["pattern"], row["permission"]) for row in matching] == [
        ("orders", "LITERAL", "ALLOW"),
        ("ord", "PREFIXED", "DENY"),
    ]
    assert rows("list", "--cluster") == []
    assert [row["permission"] for row in rows("list", "--permission", "deny")] == ["DENY"]


def test_create_makes_a_rule_for_each_principal_and_operation(cluster: Cluster) -> None:
    cluster.acls.clear()
    arguments = ["create", "--allow-principal", "User:a", "--deny-principal", "User:*", "--operation", "read"]
    arguments += ["--operation", "describe-configs", "--group", "app-", "--prefixed", "--host", "::1"]
    assert {row["status"] for row in rows(*arguments, "-d")} == {"would be created"}
    assert cluster.acls == []
    assert {row["status"] for row in rows(*arguments)} == {"created"}
    expected = AclBinding(ResourceType.GROUP, "app-", PatternType.PREFIXED, "", "0:0:0:0:0:0:0:1", 0, 0)
    assert cluster.acls == [
        expected._replace(principal=principal, operation=operation, permission_type=permission)
        for principal, permission in (("User:a", Permission.ALLOW), ("User:*", Permission.DENY))
        for operation in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
    ]


def test_delete_tells_what_it_deleted(cluster: Cluster) -> None:
    assert [row["status"] for row in rows("delete", "--topic", "orders", "--dry-run")] == ["would be deleted"]
    assert cluster.acls == [RULE, DENIAL]
    assert [row["name"] for row in rows("delete", "--topic", "orders")] == ["orders"]
    assert cluster.acls == [DENIAL]


@pytest.mark.parametrize(
    ("more", "decision", "rule", "name"),
    [
        (["--principal", "User:alice", "--host", "192.168.0.1"], "ALLOWED", "MatchingAcl", "orders"),
        (["--principal", "User:alice", "--host", "10.1.1.1"], "DENIED", "MatchingAcl", "ord"),
        (["--principal", "User:bob", "--host", "10.1.1.1", "--allow-if-no-acl"], "DENIED", "DefaultDeny", None),
        (["--principal", "User:bob", "--host", "::1", "--super-user", "User:bob"], "ALLOWED", "SuperUser", None),
    ],
)
def test_explain_names_the_rule(cluster: Cluster, more: list[str], decision: str, rule: str, name: str | None) -> None:
    (row,) = rows("explain", "--topic", "orders", "--operation", "read", *more)
    assert (row["decision"], row["rule"], row["name"]) == (decision, rule, name)


def test_explain_of_a_resource_without_rules(cluster: Cluster) -> None:
    arguments = ["explain", "--group", "g", "--operation", "read", "--principal", "User:bob", "--host", "10.1.1.1"]
    assert rows(*arguments)[0]["rule"] == "DefaultDeny"
    assert rows(*arguments, "--allow-if-no-acl")[0]["rule"] == "DefaultAllow"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--topic", "a", "--group", "b"], "Name one resource"),
        (["create", "--allow-principal", "User:a", "--operation", "read"], "Name the resource"),
        (["create", "--topic", "t", "--operation", "read"], "Name who may"),
        (["create", "--topic", "t", "--operation", "read", "--allow-principal", "bob"], "bob is not a principal"),
        (["delete"], "Select what to delete"),
        (["delete", "--resource-pattern-type", "prefixed"], "Select what to delete"),
    ],
)
def test_command_lines_that_name_too_little(cluster: Cluster, arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert cluster.acls == [RULE, DENIAL]


def test_failures_of_the_cluster(cluster: Cluster) -> None:
    assert run("delete", "--topic", "absent").exit_code == 1
    cluster.error = error_for(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    assert run("list").exit_code == 1
    creation = ["create", "--topic", "t", "--operation", "read", "--allow-principal", "User:a"]
    assert run(*creation).exit_code == 1
