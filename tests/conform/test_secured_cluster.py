"""Three nodes with SASL_SSL on every listener, by librdkafka: kills, faults in encrypted links, and a node of another authority."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import barnabas
from barnabas.client.properties import read_properties
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import node_settings
from barnabas.verify.run import Run, Settings
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PATIENCE_SECONDS = 60
ACLS = [
    "--allow-principal User:alice --operation all --topic orders",
    "--allow-principal User:alice --operation read --group readers",
    "--allow-principal User:alice --operation idempotent-write --cluster",
]


@pytest.fixture(scope="module")
def running() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster(3, security="SASL_SSL", users={"alice": "alice-secret"}, acls=ACLS) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: barnabas.Cluster) -> barnabas.Cluster:
    running.reset()
    running.create_topic("orders", config={"min.insync.replicas": 2})
    return running


class Sender:
    """An idempotent producer of librdkafka, and the numbers that were acknowledged to it, in order."""

    def __init__(self, cluster: barnabas.Cluster) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self._sent = 0
        self._producer = Producer(
            {
                **cluster.librdkafka_settings("alice", mechanism="SCRAM-SHA-512"),
                "enable.idempotence": True, "acks": "all", "linger.ms": 0, "retry.backoff.ms": 20, "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200, "socket.connection.setup.timeout.ms": 2000, "log_level": 0,
                # A paused leader keeps its connections: the producer asks the next leader when this has passed.
                "socket.timeout.ms": 5000,
            }
        )  # fmt: skip

    def send(self, count: int = 50, *, wait: bool = True) -> None:
        for _ in range(count):
            number = self._sent
            self._producer.produce(
                "orders", str(number), on_delivery=lambda error, _, number=number: self._told(number, error)
            )
            self._sent += 1
        if wait:
            assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _told(self, number: int, error: object) -> None:
        if error is None:
            self.acknowledged.append(number)
        else:
            self.failures.append(str(error))


def read(cluster: barnabas.Cluster, count: int) -> list[int]:
    """Return the first numbers of the topic, as a member of a group reads them."""
    consumer = Consumer(
        {**cluster.librdkafka_settings("alice"), "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    found: list[int] = []
    try:
        while len(found) < count:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, f"only {len(found)} of {count} records"
            assert message.error() is None, message.error()
            value = message.value()
            assert value is not None
            found.append(int(value))
    finally:
        consumer.close()
    return found


def test_a_leader_and_a_controller_are_killed(cluster: barnabas.Cluster) -> None:
    sender = Sender(cluster)
    sender.send()
    for victim in (cluster.leader("orders"), cluster.controller()):
        cluster.kill(victim)
        sender.send()
        cluster.restart(victim)
        cluster.wait_until_in_sync()
        sender.send()
    assert sender.failures == []
    assert read(cluster, 250) == sender.acknowledged == list(range(250))


def test_faults_of_encrypted_links(cluster: barnabas.Cluster) -> None:
    sender = Sender(cluster)
    sender.send()
    leader = cluster.leader("orders")
    others = [node for node in cluster.nodes if node != leader]
    cluster.partition(leader, others)
    sender.send(wait=False)
    wait_for("the others have a leader of their own", lambda: cluster.leader("orders") != leader)
    cluster.heal()
    sender.send()
    cluster.wait_until_in_sync()
    cluster.pause(cluster.leader("orders"))
    sender.send()
    for node in set(cluster.nodes) - set(cluster.running_nodes):
        cluster.resume(node)
    cluster.delay((1, 2), 0.02)
    lost = cluster.drop_response_after_write()
    sender.send()
    assert lost.hits == 1
    cluster.heal()
    cluster.wait_until_in_sync()
    assert sender.failures == []
    assert read(cluster, 250) == sender.acknowledged == list(range(250))


def test_a_node_of_another_authority_gets_nowhere(cluster: barnabas.Cluster, tmp_path: Path) -> None:
    logs = [Path(cluster.data_dir) / f"node-{node}" / "node.log" for node in cluster.nodes]
    before = [log.stat().st_size for log in logs]
    stranger = Stranger(cluster, tmp_path)
    try:
        wait_for("the stranger has tried", lambda: stranger.lines("cannot register yet"), PATIENCE_SECONDS)
        ports = read_properties(str(logs[0].with_name("server.properties")))["controller.quorum.voters"]
        for address in (*cluster.bootstrap_servers.split(","), *(each.partition("@")[2] for each in ports.split(","))):
            knock(address, stranger.authority, 50)
        sender = Sender(cluster)
        sender.send()
        assert read(cluster, 50) == sender.acknowledged
        reasons = stranger.lines("This node cannot talk to node")
        assert "at its listener CONTROLLER (127.0.0.1:" in reasons[0]
        assert "is not trusted" in reasons[0]
        assert "put its issuer into ssl.truststore.location; a setting of this listener alone begins with" in reasons[0]
        assert len(reasons) <= 6, "one line for each controller, and how often in a minute"
        assert len(stranger.lines("")) < 100
        assert stranger.process.poll() is None, "it goes on trying"
    finally:
        stranger.process.kill()
        stranger.process.wait()
    for log, size in zip(logs, before, strict=True):
        lines = log.read_bytes()[size:].decode().splitlines()
        of_strangers = [line for line in lines if "TLS" in line or "certificate" in line or "alert" in line]
        assert of_strangers, "somebody who looks for the reason finds it"
        assert len(of_strangers) <= 10, of_strangers
    assert cluster.running_nodes == cluster.nodes


class Stranger:
    """A broker that names the cluster's controllers and knows a password, with certificates of its own authority."""

    def __init__(self, cluster: barnabas.Cluster, folder: Path) -> None:
        self.authority = DevelopmentAuthority.create(int(time.time() * 1000), "CN=another authority")
        known = read_properties(str(Path(cluster.data_dir) / "node-1" / "server.properties"))
        (folder / "ca.pem").write_text(self.authority.certificate)
        issued = self.authority.issue("CN=node-9", hosts=["127.0.0.1"])
        (folder / "node.pem").write_text(issued.key + issued.certificate)
        stores = {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "node.pem"),
            "ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem"),
        }  # fmt: skip
        settings = node_settings(
            "SASL_SSL", stores=stores, users={"admin": "alice-secret"}, nodes=(), is_alone=False, asks_certificates=False,
            has_authorizer=True,
        ) | {
            "process.roles": "broker", "node.id": "9", "listeners": "SASL_SSL://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER", "controller.quorum.voters": known["controller.quorum.voters"],
            "log.dirs": str(folder / "data"),
        }  # fmt: skip
        file = folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command = [sys.executable, "-m", "barnabas"]
        subprocess.run(
            [*command, "storage", "format", "-t", cluster.cluster_id, "-c", str(file)], check=True, capture_output=True
        )
        self.log = folder / "node.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "start", "--config", str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def lines(self, word: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if word in line]


def knock(address: str, authority: DevelopmentAuthority, times: int) -> None:
    """Begin to shake hands so many times, with a client that trusts another authority."""
    context = ssl.create_default_context(cadata=authority.certificate)
    host, _, port = address.partition(":")
    for _ in range(times):
        with suppress(OSError), socket.create_connection((host, int(port)), 5) as plain:
            context.wrap_socket(plain, server_hostname=host).close()


@pytest.mark.long
def test_promises_hold_while_nodes_are_killed(running: barnabas.Cluster, tmp_path: Path) -> None:
    """`barnabas verify` over a minute of kills; the checker's clients log in as the super user."""
    running.reset()
    security = client_security(running.client_settings())
    run = Run(
        Settings(
            running.bootstrap_servers, seconds=60, seed=23, replication_factor=3, call_timeout_s=60, security=security
        ),
        tmp_path / "history.jsonl",
    )
    verdicts = []
    working = threading.Thread(target=lambda: verdicts.append(run()))
    working.start()
    kills = 0
    try:
        wait_for("the clients work", lambda: run.phase == "working")
        while run.phase == "working":
            victim = running.controller() if kills % 2 else 1 + kills % 3
            running.kill(victim)
            running.restart(victim)
            running.wait_until_in_sync()
            kills += 1
    finally:
        working.join(240)
    assert kills >= 3
    (verdict,) = verdicts
    assert verdict.anomalies == (), verdict
