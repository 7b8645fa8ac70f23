"""A barnabas broker beside a broker and a controller of Apache Kafka, with SASL_SSL on every listener and an authorizer.

Brokers log in at each other with SCRAM, at the controller with PLAIN. `test_secured_mixed_quorum` does the same at length.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.records import check_exactly_once
from tests.cluster.replicas import check_bytes_identical
from tests.cluster.secured_nodes import SCRAM, SecuredNodes
from tests.cluster.shared_rights import FEW, check_rights, check_users, create_acls, users_of
from tests.cluster.topics import create_topic
from tests.cluster.way_in import way_in

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(900)]

TOPIC = "mixed"
RECORDS = 100
JAVA, OURS = 1, 2
SETTINGS = {
    **dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), "2"),
    "share.coordinator.state.topic.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # On a busy machine a JVM takes longer to start than a broker waits for its controller.
    "initial.broker.registration.timeout.ms": "300000",
}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("secured-mixed")
    secured = SecuredNodes(folder / "keys", users=("app", *users_of(FEW)), between=SCRAM)
    with way_in.by(secured.client), Cluster(
        "apache-kafka", folder, 2, has_own_controller=True, others={OURS: "barnabas"}, settings=SETTINGS, secured=secured
    ) as cluster:  # fmt: skip
        yield cluster


def test_both_kinds_lead_and_follow(mixed: Cluster) -> None:
    """A user produces by rights that were made through barnabas; the guest dies and returns."""
    assert mixed.secured is not None
    create_topic(mixed, TOPIC, [[JAVA, OURS], [OURS, JAVA]])
    write = AclBinding(
        ResourceType.TOPIC, TOPIC, PatternType.LITERAL, "User:app", "*", AclOperation.WRITE, Permission.ALLOW
    )
    create_acls(mixed, mixed[OURS], [write])
    with Load(
        mixed.bootstrap_servers, TOPIC, 2, library=librdkafka_security(mixed.secured.client_security("app"))
    ) as load:
        load.await_more(RECORDS)
        mixed[OURS].kill()
        load.await_more(RECORDS)
        mixed.start_again(mixed[OURS])
        mixed.await_in_sync([TOPIC])
        load.await_more(RECORDS)
    check_exactly_once(mixed.bootstrap_servers, load)
    check_bytes_identical(mixed, TOPIC)


def test_rights_and_users_of_either_side_hold_on_both(mixed: Cluster) -> None:
    create_topic(mixed, "orders", [[JAVA, OURS], [OURS, JAVA]])
    both = [mixed[JAVA], mixed[OURS]]
    assert check_rights(mixed, both, FEW) > 40
    check_users(mixed, both)
