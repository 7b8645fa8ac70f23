"""One barnabas broker beside two brokers and three controllers of Apache Kafka, and the other way round: SASL_SSL everywhere, and an
authorizer.

Each broker leads and follows, dies and returns, and so do the active controllers. Rights and users of either side hold on both.
Certificates and passwords are exchanged node by node under load, and no record is lost or doubled.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.node_process import NodeProcess
from tests.cluster.reader import Reader
from tests.cluster.replicas import check_load
from tests.cluster.secured_nodes import SCRAM, SecuredNodes
from tests.cluster.shared_rights import MANY, check_rights, check_users, create_acls, users_of
from tests.cluster.topics import create_safe_topic, create_topic
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

RECORDS = 300
GUEST = 3
# On a busy machine five JVMs take longer to start than a broker waits for its controllers.
SETTINGS = {"initial.broker.registration.timeout.ms": "300000"}


@pytest.fixture(
    scope="module", params=[("apache-kafka", "barnabas"), ("barnabas", "apache-kafka")], ids="among-{0[0]}".format
)
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three controllers and brokers 1 and 2 of one kind, and broker 3 of the other."""
    hosts, guest = request.param
    folder: Path = tmp_path_factory.mktemp("secured-quorum")
    secured = SecuredNodes(folder / "keys", users=("app", *users_of(MANY)), between=SCRAM)
    with way_in.by(secured.client), Cluster(
        hosts, folder, has_own_controller=True, controllers=3, others={GUEST: guest}, settings=SETTINGS, secured=secured
    ) as cluster:  # fmt: skip
        # A consumer of librdkafka looks for the coordinator of its group, even if it only assigns partitions.
        create_acls(cluster, cluster[GUEST], [acl_of_app("reads-", AclOperation.READ, ResourceType.GROUP)])
        for maker, topic in zip(cluster.brokers, ("dying", "elected", "rolled"), strict=True):
            create_acls(
                cluster, maker, [acl_of_app(topic, operation) for operation in (AclOperation.WRITE, AclOperation.READ)]
            )
        yield cluster


def acl_of_app(name: str, operation: AclOperation, kind: ResourceType = ResourceType.TOPIC) -> AclBinding:
    """Return the ACL that allows the user of the loads and readers an operation on what has names that begin so."""
    return AclBinding(kind, name, PatternType.PREFIXED, "User:app", "*", operation, Permission.ALLOW)


def library_of_app(cluster: Cluster) -> dict[str, Any]:
    """Return librdkafka's settings of a user that may write and read the topics of the loads, and little else."""
    assert cluster.secured is not None
    return librdkafka_security(cluster.secured.client_security("app"))


def load_of(cluster: Cluster, topic: str) -> Load:
    return Load(cluster.bootstrap_servers, topic, 3, library=library_of_app(cluster))


def reader_of(cluster: Cluster, topic: str) -> Reader:
    return Reader(cluster.bootstrap_servers, topic, 3, library_of_app(cluster))


def test_each_broker_leads_follows_dies_and_returns(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, "dying")
    with reader_of(mixed, "dying") as reader:
        with load_of(mixed, "dying") as load:
            load.await_more(RECORDS)
            for node in (mixed[GUEST], mixed[1], mixed[2], mixed[GUEST]):
                node.kill()
                load.await_more(RECORDS)
                mixed.start_again(node)
                mixed.await_in_sync(["dying"])
                load.await_more(RECORDS)
        print(reader.check(load))
    check_load(tools, mixed, load)


def test_active_controllers_die(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, "elected")
    with reader_of(mixed, "elected") as reader:
        with load_of(mixed, "elected") as load:
            for number in range(2):
                killed = mixed.active_controller()
                killed.kill()
                wait_for("another controller is active", lambda killed=killed: mixed.active_controller() is not killed)  # type: ignore[misc]
                # A request that a broker forwards in an Envelope, to a controller that has just read the lists.
                create_topic(mixed, f"after-election-{number}", [[GUEST, 1], [2, GUEST]])
                load.await_more(RECORDS)
                mixed.start_again(killed)
                mixed.await_in_sync(["elected", f"after-election-{number}"])
                load.await_more(RECORDS)
        print(reader.check(load))
    check_load(tools, mixed, load)


def test_rights_and_users_of_either_side_hold_on_both(mixed: Cluster) -> None:
    create_topic(mixed, "orders", [[1, GUEST], [GUEST, 1]])
    assert check_rights(mixed, [mixed[1], mixed[GUEST]], MANY) > 200
    check_users(mixed, [mixed[1], mixed[GUEST]])


def test_certificates_and_passwords_are_exchanged_under_load(mixed: Cluster, tools: ToolProcess) -> None:
    """Each node gets a certificate of another authority, and logs in as another user."""
    assert mixed.secured is not None
    old, new = mixed.secured.authorities
    create_safe_topic(mixed, "rolled")
    with reader_of(mixed, "rolled") as reader:
        with load_of(mixed, "rolled") as load:
            load.await_more(RECORDS)
            for node in mixed.nodes.values():
                assert is_certified(node, old)
                mixed.secured.roll(node)
                node.stop()
                node.write_config(mixed.properties(node))
                node.start()
                assert is_certified(node, new)
                mixed.await_in_sync(["rolled"])
                load.await_more(RECORDS)
        print(reader.check(load))
    check_load(tools, mixed, load)


def is_certified(node: NodeProcess, authority: DevelopmentAuthority) -> bool:
    """Return whether a node shows a certificate of this authority."""
    context = ssl.create_default_context(cadata=authority.certificate)
    port = node.port or node.controller_port
    try:
        with (
            socket.create_connection((node.host, port), 10) as plain,
            context.wrap_socket(plain, server_hostname=node.host),
        ):
            return True
    except ssl.SSLCertVerificationError:
        return False
