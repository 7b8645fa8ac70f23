"""The component `secured` of packaging/kubernetes: its nodes find each other with TLS and logins, and brokers come and go."""

from __future__ import annotations

import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from ssl import create_default_context
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.admin import Admin
from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.protocol.errors import KafkaError as Rejected
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import client_login
from tests.cluster.waiting import wait_for
from tests.packaging.kubernetes import kustomized, needs_kubectl, objects, of_the_page, with_brokers
from tests.packaging.pods import COMMAND, SECRETS, Pods
from tests.process.process import ENVIRONMENT

pytestmark = [pytest.mark.conform, needs_kubectl]

LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="hunter2" user_admin="hunter2"'
TOKEN = "0123456789abcdef0123456789abcdef"
NOW_MS = 1_790_000_000_000
TOPIC = "orders"
PARTITIONS = 5
SECONDS = 90


def page_with_secrets(folder: Path) -> tuple[Path, str]:
    """Write the page's second kustomization with its secrets; return its folder and the authority's certificate."""
    authority = DevelopmentAuthority.create(NOW_MS)
    # The certificate of a cluster has the pods' names; these nodes have addresses.
    issued = authority.issue("CN=node", hosts=["127.0.0.1"])
    secrets = {
        "node.pem": issued.key + issued.certificate + issued.authority,
        "ca.pem": authority.certificate,
        "metrics.token": f"{TOKEN}\n",
        "clients.jaas": f'{LOGIN} user_alice="hunter3";\n',
        "controllers.jaas": f"{LOGIN};\n",
    }
    return of_the_page(folder, 1, secrets), authority.certificate


def test_nodes_and_clients_log_in(tmp_path: Path) -> None:
    page, certificate = page_with_secrets(tmp_path / "page")
    with ExitStack() as stack:
        pods = Pods(objects(kustomized(page)), tmp_path, stack)
        pods.wait_until_ready()
        bootstrap = f"127.0.0.1:{pods.port('barnabas-0', '9092')}"
        properties = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / SECRETS / "ca.pem"),
        }
        with Admin(
            bootstrap, security=client_security(properties | client_login("PLAIN", "admin", "hunter2"))
        ) as admin:
            assert {each.id for each in admin.describe_cluster().brokers} == {0, 1, 2}
        with (
            pytest.raises(Rejected, match="Authentication failed"),
            Admin(bootstrap, security=client_security(properties | client_login("PLAIN", "admin", "hunter3"))) as admin,
        ):
            admin.describe_cluster()
        metrics = f"https://127.0.0.1:{pods.port('barnabas-0', '9308')}/metrics"
        context = create_default_context(cadata=certificate)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(metrics, context=context)
        asked = urllib.request.Request(metrics, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, context=context) as answer:
            assert b"kafka_server_" in answer.read()
        assert pods.stop() == [0, 0, 0]
        assert not any("hunter" in log.read_text() for log in pods.logs.values())


class Records:
    """A producer that sends numbered records until the test stops it.

    Attributes:
        acknowledged: the numbers that all in-sync replicas have.
        failed: why others were not delivered.
    """

    def __init__(self, connection: Mapping[str, Any]) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[str] = []
        self._producer = Producer({**connection, "enable.idempotence": True})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        number = 0
        while not self._stopped.wait(0.002):
            self._producer.produce(TOPIC, str(number), on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value() or b"-1"))
        else:
            self.failed.append(str(error))

    def until_more(self) -> None:
        """Wait until records are acknowledged that were not yet sent."""
        before = len(self.acknowledged)
        wait_for("more acknowledged records", lambda: len(self.acknowledged) > before + 100, SECONDS)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(90)


def read_all(connection: Mapping[str, Any], partitions: int) -> list[int]:
    consumer = Consumer({**connection, "group.id": "reader", "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, each, OFFSET_BEGINNING) for each in range(partitions)])
    found, ends = [], set()
    while len(ends) < partitions:
        (message,) = consumer.consume(1, SECONDS)
        error = message.error()
        if error is None:
            found.append(int(message.value() or b"-1"))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends.add(message.partition())
    consumer.close()
    return found


def test_two_brokers_come_and_go_under_a_producer(tmp_path: Path) -> None:
    """As docs/kubernetes.md says under "More and fewer nodes": rebalance after the first pods, drain and forget before the last ones."""
    page, _ = page_with_secrets(tmp_path / "page")
    with ExitStack() as stack:
        pods = Pods(objects(kustomized(page)), tmp_path, stack)
        pods.wait_until_ready()
        properties = {
            "bootstrap.servers": ",".join(f"127.0.0.1:{pods.port(pod, '9092')}" for pod in pods.names),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / SECRETS / "ca.pem"),
        } | client_login("PLAIN", "admin", "hunter2")
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        connection = {
            "bootstrap.servers": properties["bootstrap.servers"],
            **librdkafka_security(client_security(properties)),
        }

        def command(*words: str) -> str:
            done = subprocess.run(
                [str(COMMAND), "cluster", *words, "--command-config", str(file)],
                capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=SECONDS,
            )  # fmt: skip
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        def holders() -> set[int]:
            topic = AdminClient(connection).list_topics(TOPIC, 30).topics[TOPIC]
            return {replica for partition in topic.partitions.values() for replica in partition.replicas}

        admin = AdminClient(connection)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)], operation_timeout=60)[TOPIC].result(60)
        records = Records(connection)
        stack.callback(records.stop)
        records.until_more()
        assert holders() == {0, 1, 2}
        with_brokers(page, 2)
        assert pods.apply(objects(kustomized(page))) == {}
        new = ("barnabas-brokers-3", "barnabas-brokers-4")
        pods.wait_until_ready(*new)
        command("rebalance")
        assert holders() == {0, 1, 2, 3, 4}
        command("status")
        records.until_more()
        for node in (4, 3):
            command("drain", str(node))
            assert node not in holders()
            with_brokers(page, node - 3)
            assert pods.apply(objects(kustomized(page))) == {f"barnabas-brokers-{node}": 0}
            command("forget", str(node))
        assert holders() == {0, 1, 2}
        command("status")
        records.until_more()
        records.stop()
        assert records.failed == []
        found = read_all(connection, PARTITIONS)
        assert sorted(found) == sorted(records.acknowledged)
        assert len(found) == len(set(found)) > 300
        assert pods.stop() == [0, 0, 0]
