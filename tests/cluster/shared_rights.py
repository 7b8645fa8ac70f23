"""Rights and users of a cluster of both kinds: those made on one side decide, and log in, alike on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages as m
from barnabas.security.acls import AclBinding
from tests.api.authorization.rows import ROWS, Row, codes
from tests.cluster import views
from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess
from tests.cluster.secured_nodes import SCRAM
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in

FEW = ("produce", "create-topics", "configs-topic", "elect")
"""Rows that a broker decides, and rows that the controller decides in the client's name (Envelope)."""
MANY = (
    *FEW, "fetch", "list-offsets", "metadata", "offset-commit", "find-group", "find-txn", "join", "create-partitions", "delete-records",
    "epochs", "add-partitions", "end-txn", "alter-topic", "alter-broker", "reassignments", "quotas", "alter-quotas", "scram-users",
    "alter-scram", "quorum", "features", "producers", "log-dirs", "unregister", "describe-acls", "verify-partitions",
)  # fmt: skip
DESCRIBE_ALL = m.DescribeAclsRequest(
    resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, resource_name_filter=None,
    principal_filter=None, host_filter=None,
)  # fmt: skip


def users_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the users of PLAIN that play these rows."""
    return tuple(row.user(mode) for row, mode in _plays(names) if mode != "super")


def _plays(names: Sequence[str]) -> Iterator[tuple[Row, str]]:
    return ((row, mode) for row in ROWS if row.name in names for mode in row.modes())


def create_acls(cluster: Cluster, node: NodeProcess, acls: Sequence[AclBinding]) -> None:
    """Create access control lists through one broker, and wait until all brokers have them."""
    kind = m.CreateAclsRequest
    creations = [
        kind.AclCreation(
            resource_type=acl.resource_type, resource_name=acl.resource_name, resource_pattern_type=acl.pattern_type,
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type,
        )
        for acl in acls
    ]  # fmt: skip
    with BlockingConnection(*node.address, timeout_ms=views.ANSWER_MS, security=way_in.security) as connection:
        results = connection.request(kind(creations=creations)).results
    assert {each.error_code for each in results} <= {0}, results
    made = {tuple(acl) for acl in acls}
    for each in cluster.brokers:
        wait_for(f"node {each.node_id} has the access control lists", lambda each=each: acls_of(each) >= made)  # type: ignore[misc]


def acls_of(node: NodeProcess) -> set[tuple[Any, ...]]:
    """Return the access control lists that one broker has."""
    with BlockingConnection(*node.address, timeout_ms=views.ANSWER_MS, security=way_in.security) as connection:
        found = connection.request(DESCRIBE_ALL)
    assert not found.error_code, found
    return {
        (each.resource_type, each.resource_name, each.pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type)
        for each in found.resources
        for acl in each.acls
    }  # fmt: skip


def check_rights(cluster: Cluster, brokers: Sequence[NodeProcess], names: Sequence[str]) -> int:
    """Each broker decides about each row as its rights say, whichever broker they were made through; return how many decisions it were.

    Args:
        brokers: of both kinds; each makes some of the lists.
    """
    plays = list(_plays(names))
    for number, maker in enumerate(brokers):
        mine = [acl for row, mode in plays[number :: len(brokers)] for acl in row.acls(mode)]
        create_acls(cluster, maker, mine)
    for row, mode in plays:
        expected = row.lacks(mode)
        wanted = set() if expected is None or expected.code < 0 else {expected.code}
        for node in brokers:
            denied = set(codes(_play(cluster, node, row, mode)))
            assert denied == wanted, f"node {node.node_id} ({node.kind}): {row.name}, {mode}: {denied}"
    return len(plays) * len(brokers)


def _play(cluster: Cluster, node: NodeProcess, row: Row, mode: str) -> Any:
    assert cluster.secured is not None
    security = cluster.secured.client_security(row.user(mode))
    with BlockingConnection(*node.address, timeout_ms=30_000, security=security) as connection:
        return connection.request(row.make(mode), version=row.version)


def check_users(cluster: Cluster, brokers: Sequence[NodeProcess]) -> None:
    """A user of SCRAM that is made through any broker logs in at every one; with another password nowhere."""
    assert cluster.secured is not None
    for maker in brokers:
        user = f"made-by-{maker.node_id}"
        admin = AdminClient({"bootstrap.servers": maker.bootstrap_servers, "log_level": 0, **way_in.library})
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = UserScramCredentialUpsertion(user, credential, cluster.secured.password_of(user).encode())
        for future in admin.alter_user_scram_credentials([upsertion]).values():
            future.result(60)
        for node in brokers:
            wait_for(f"{user} logs in at node {node.node_id}", partial(_logs_in, cluster, node, user))
            assert not _logs_in(cluster, node, user, "wrong"), f"node {node.node_id} lets everybody in"


def _logs_in(cluster: Cluster, node: NodeProcess, user: str, secret: str | None = None) -> bool:
    """Return whether librdkafka gets an answer from this broker as that user."""
    assert cluster.secured is not None
    settings = librdkafka_security(cluster.secured.client_security(user, SCRAM, secret))
    admin = AdminClient({"bootstrap.servers": node.bootstrap_servers, "log_level": 0, **settings})
    try:
        return bool(admin.list_topics(timeout=5 if secret is None else 1.5).brokers)
    except KafkaException:
        return False
