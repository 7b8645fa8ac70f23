"""A cluster of both kinds, SASL_SSL everywhere, with an authorizer: one barnabas broker beside two brokers and three controllers of Apache
Kafka, and one Apache Kafka broker beside two brokers and three controllers of barnabas.

Each broker leads and follows, dies and returns, and so do the active controllers. Rights and users of either side hold on both.
Certificates and passwords are exchanged node by node under load, and no record is lost or doubled.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.cluster.cluster import Cluster
from tests.cluster.cluster_security import PLAIN, SCRAM, ClusterSecurity
from tests.cluster.load import Load
from tests.cluster.node_process import NodeProcess
from tests.cluster.replicas import check_load
from tests.cluster.shared_rights import MANY, check_rights, check_users, create_acls, users_of
from tests.cluster.topics import create_safe_topic, create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

RECORDS = 300
GUEST = 3
# On a busy machine five JVMs take longer to start than a broker waits for its controllers.
SETTINGS = {"initial.broker.registration.timeout.ms": "300000"}


@pytest.fixture(scope="module", params=["apache-kafka", "barnabas"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three controllers and brokers 1 and 2 of one kind, and broker 3 of the other."""
    host: str = request.param
    guest = "barnabas" if host == "apache-kafka" else "apache-kafka"
    folder: Path = tmp_path_factory.mktemp(f"secured-{host}")
    between = SCRAM if host == "apache-kafka" else PLAIN
    security = ClusterSecurity(folder / "keys", ("app", *users_of(MANY)), between)
    with Cluster(
        host, folder, has_own_controller=True, controllers=3, others={GUEST: guest}, settings=SETTINGS, security=security
    ) as cluster:  # fmt: skip
        for number, pattern in enumerate(("dying", "elected", "rolled")):
            write = AclBinding(
                ResourceType.TOPIC, pattern, PatternType.PREFIXED, "User:app", "*", AclOperation.WRITE, Permission.ALLOW
            )
            create_acls(cluster, cluster.brokers[number], [write])
        yield cluster


def load_of(cluster: Cluster, topic: str) -> Load:
    """Return a load in the name of a user with the right to write, and no other."""
    assert cluster.security is not None
    return Load(cluster.bootstrap_servers, topic, 3, settings=cluster.security.librdkafka("app"))


def test_each_broker_leads_follows_dies_and_returns(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, "dying")
    with load_of(mixed, "dying") as load:
        load.await_more(RECORDS)
        for node in (mixed[GUEST], mixed[1], mixed[2], mixed[GUEST]):
            node.kill()
            load.await_more(RECORDS)
            mixed.start_again(node)
            mixed.await_in_sync(["dying"])
            load.await_more(RECORDS)
    check_load(tools, mixed, load)


def test_active_controllers_die(mixed: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(mixed, "elected")
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
    check_load(tools, mixed, load)


def test_rights_and_users_of_either_side_hold_on_both(mixed: Cluster) -> None:
    create_topic(mixed, "orders", [[1, GUEST], [GUEST, 1]])
    assert check_rights(mixed, [mixed[1], mixed[GUEST]], MANY) > 200
    check_users(mixed, [mixed[1], mixed[GUEST]])


def test_certificates_and_passwords_are_exchanged_under_load(mixed: Cluster, tools: ToolProcess) -> None:
    """Each node gets a certificate of another authority, and logs in as another user."""
    assert mixed.security is not None
    old, new = mixed.security.authorities
    create_safe_topic(mixed, "rolled")
    with load_of(mixed, "rolled") as load:
        load.await_more(RECORDS)
        for node in mixed.nodes.values():
            assert is_certified(node, old)
            mixed.security.roll(node)
            node.stop()
            node.write_config(mixed.properties(node))
            node.start()
            assert is_certified(node, new)
            mixed.await_in_sync(["rolled"])
            load.await_more(RECORDS)
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
