"""Rights side by side: the rows of `tests.api.authorization.rows` on Apache Kafka and on barnabas, and the same answers.

Users log in to Apache Kafka with PLAIN; on barnabas, a node without sockets here, each request has its principal given. The answers are
compared by what a client can learn from them: errors, names, whether there are words and ids, the operations it may perform, and how many
elements there are. What else an allowed answer has is another test's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import free_port

from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages as m
from barnabas.protocol.message import Struct
from tests.api.authorization.answers import SETTINGS, Authorized, furnish
from tests.api.authorization.rows import DENIALS, ROWS, Row, codes
from tests.conform.brokers import KafkaProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

ALLOWED_DIFFERS = frozenset(
    {
        "log-dirs",
        "log-dirs-old",
        "configs-broker",
        "init-producer-id",
        "produce-txn",
        "add-partitions",
        "describe-acls",
        "create-topics",
        "create-topics-cluster",
    }
)
"""Rows whose allowed answers tell of the node itself, or depend on the requests before them."""
LONGER = frozenset({"configs", "synonyms", "api_keys", "results", "members"})
LEFT_OUT = frozenset({
    "throttle_time_ms", "cluster_id", "host", "port", "node_id", "broker_id", "controller_id", "leader_id", "producer_id",
    "base_offset", "log_start_offset", "log_append_time_ms", "timestamp", "offset", "leader_epoch", "current_leader", "end_offset",
    "session_id", "records", "high_watermark", "last_stable_offset", "producer_epoch", "log_dir", "node_endpoints", "brokers",
    "nodes", "active_producers", "value", "low_watermark", "current_voters", "observers",
})  # fmt: skip


class Judge:
    """Apache Kafka with an authorizer and users."""

    def __init__(self, folder: Path) -> None:
        users = ["admin", *(row.user(mode) for row in ROWS for mode in row.modes() if mode != "super")]
        passwords = " ".join(f'user_{user}="{user}"' for user in users)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        self.process = KafkaProcess(folder)
        self.port = free_port()
        listeners = {
            "CLIENTS": f"127.0.0.1:{self.port}",
            "PLAINTEXT": f"127.0.0.1:{self.process.port}",
            "CONTROLLER": f"127.0.0.1:{self.process.controller_port}",
        }
        self.process.settings = {
            **SETTINGS,
            # Its nodes speak in plain text: on those listeners, and nowhere else, a peer is ANONYMOUS.
            "super.users": "User:admin;User:ANONYMOUS",
            "listeners": ",".join(f"{name}://{address}" for name, address in listeners.items()),
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": f"{module} {passwords};",
        }
        self.process.start()
        self.admin = self.log_in("admin")

    def log_in(self, user: str) -> BlockingConnection:
        connection = BlockingConnection("127.0.0.1", self.port, client_id="test")
        connection.request(m.SaslHandshakeRequest(mechanism="PLAIN"), version=1)
        token = f"\0{user}\0{user}".encode()
        answer = connection.request(m.SaslAuthenticateRequest(auth_bytes=token), version=2)
        assert answer.error_code == 0, answer
        return connection

    def ask(self, request: Any, version: int) -> Any:
        return self.admin.request(request, version=version)

    def create_topic(self, name: str, partitions: int) -> None:
        kind = m.CreateTopicsRequest
        topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        created = self.ask(kind(topics=[topic], timeout_ms=10_000), 7).topics[0]
        assert created.error_code == 0, created

    def allow(self, row: Row) -> None:
        kind = m.CreateAclsRequest
        creations = [
            kind.AclCreation(
                resource_type=acl.resource_type, resource_name=acl.resource_name, resource_pattern_type=acl.pattern_type,
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type,
            )
            for mode in row.modes() for acl in row.acls(mode)
        ]  # fmt: skip
        assert {each.error_code for each in self.ask(kind(creations=creations), 3).results} == {0}

    def play(self, row: Row, mode: str) -> Any:
        connection = self.log_in(row.user(mode))
        try:
            return connection.request(row.make(mode), version=row.version)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Judge, Authorized]]:
    judge = Judge(tmp_path_factory.mktemp("judge"))
    ours = Authorized(tmp_path_factory.mktemp("ours"))
    for node in (judge, ours):
        furnish(node)
        # Until its topic is there, Apache Kafka answers that no share coordinator is available.
        keys = m.FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAABw:0"])
        while node.ask(keys, 6).coordinators[0].error_code:
            pass
    for row in ROWS:
        judge.allow(row)
        ours.allow([acl for mode in row.modes() for acl in row.acls(mode)])
    yield judge, ours
    ours.close()
    judge.process.kill()


def seen(value: Any, name: str = "") -> Any:
    """Return what a client learns from a part of an answer."""
    if isinstance(value, Struct):
        return {each: seen(getattr(value, each), each) for each in value.FIELDS if each not in LEFT_OUT}
    if isinstance(value, list):
        found = [seen(each) for each in value]
        return (
            "some"
            if name in LONGER and found and not any(isinstance(each, Struct) for each in value)
            else sorted(found, key=str)
        )
    if isinstance(value, (bytes, bytearray, memoryview)):
        return any(value)
    if name.endswith("error_message"):
        return value is not None
    return value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_answers_are_alike(sides: tuple[Judge, Authorized], row: Row) -> None:
    judge, ours = sides
    for mode in row.modes():
        theirs, own = judge.play(row, mode), ours.play(row, mode)
        assert set(codes(own)) == set(codes(theirs)), mode
        if set(codes(theirs)) & DENIALS or row.name not in ALLOWED_DIFFERS:
            assert seen(own) == seen(theirs), mode
