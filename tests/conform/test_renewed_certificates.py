"""Certificates that are renewed while clients of other projects work: nothing is lost or doubled, and wrong stores get Kafka's words."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_kafka
import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client.admin import Admin, NewTopic
from barnabas.protocol.errors import KafkaError
from barnabas.security.certificate_entries import certificate_entry
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority, IssuedCertificate
from tests.conform.brokers import BarnabasProcess
from tests.conform.secured_kafka import SecuredKafka
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

HOSTS = ["localhost", "127.0.0.1"]
SECONDS = 30
"""A renewed file is in use after a few; a busy machine takes longer."""


class Certificates:
    """An authority, and the files of a node and of a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = DevelopmentAuthority.create(int(time.time() * 1000))
        self.node = folder / "node.pem"
        (folder / "ca.pem").write_text(self.authority.certificate)
        alice = self.authority.issue("CN=alice")
        (folder / "alice.key").write_text(alice.key)
        (folder / "alice.crt").write_text(alice.certificate)
        (folder / "alice.p12").write_bytes(alice.pkcs12("store-secret"))
        self.renew()

    def renew(self) -> int:
        """Put another certificate in the place of the node's, as one does; return its serial number."""
        issued = self.authority.issue("CN=node", hosts=HOSTS)
        beside = self.folder / "node.new"
        beside.write_text(issued.key + issued.certificate)
        beside.replace(self.node)
        return serial_of(issued)

    def of_java(self) -> dict[str, str]:
        """Return the settings of a client with a certificate, in Java's names."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "ssl.keystore.location": str(self.folder / "alice.p12"),
            "ssl.keystore.password": "store-secret",
        }

    def of_librdkafka(self) -> dict[str, str]:
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "ssl.certificate.location": str(self.folder / "alice.crt"),
            "ssl.key.location": str(self.folder / "alice.key"),
        }


def serial_of(issued: IssuedCertificate) -> int:
    return certificate_entry("", ssl.PEM_cert_to_DER_cert(issued.certificate)).serial


def serial_at(port: int, certificates: Certificates) -> int:
    """Return the serial number of the certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=str(certificates.folder / "ca.pem"))
    context.load_cert_chain(certificates.folder / "alice.crt", certificates.folder / "alice.key")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        found = secured.getpeercert(binary_form=True)
    assert found is not None
    return certificate_entry("", found).serial


def wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


MUTUAL = {"listener.security.protocol.map": "OUT:SSL", "ssl.client.auth": "required"}
"""Clients show certificates."""
PLAIN, SCRAM = (f"org.apache.kafka.common.security.{each}LoginModule" for each in ("plain.Plain", "scram.Scram"))
LOGINS = {
    "listener.security.protocol.map": "OUT:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.out.plain.sasl.jaas.config": f'{PLAIN} required user_admin="admin-secret";',
}
"""Clients log in."""


class Secured(BarnabasProcess):
    """A node with one listener; its settings are in a file."""

    def __init__(self, folder: Path, certificates: Certificates, more: dict[str, str]) -> None:
        super().__init__(folder)
        folder.mkdir()
        self.file = folder / "server.properties"
        settings = {
            "listeners": f"OUT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_dir),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.node),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.folder / "ca.pem"),
            **more,
        }
        self.file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.file)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tools(certificates: Certificates) -> Iterator[ToolProcess]:
    running = ToolProcess(certificates.folder / "tools.log")
    yield running
    running.close()


def alter(
    tools: ToolProcess, bootstrap: str, client: dict[str, str], *add: str, to: str = "1", kind: str = "brokers"
) -> str:
    """Have kafka-configs.sh alter the settings of a broker, or a user."""
    file = tools.log.parent / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in client.items()))
    entity = ("--entity-default",) if to == "" else ("--entity-name", to)
    where = ("--bootstrap-server", bootstrap, "--command-config", str(file))
    return tools.run("configs", *where, "--alter", "--entity-type", kind, *entity, "--add-config", ",".join(add))


class Load:
    """An idempotent producer and a consumer, in threads of their own, until `end`."""

    def __init__(self, bootstrap: str, security: dict[str, str]) -> None:
        self.produced = 0
        self.failures: list[str] = []
        self.consumed: list[int] = []
        self._ended = threading.Event()
        common: dict[str, Any] = {"bootstrap.servers": bootstrap, **security}
        self._producer = Producer({**common, "enable.idempotence": True, "linger.ms": 2})
        self._consumer = Consumer({**common, "group.id": "readers", "auto.offset.reset": "earliest"})
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        while not self._ended.is_set():
            self._producer.produce("orders", str(self.produced).encode(), partition=0, on_delivery=self._delivered)
            self.produced += 1
            self._producer.poll(0.001)
        self._producer.flush(SECONDS)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))

    def _consume(self) -> None:
        self._consumer.subscribe(["orders"])
        deadline: float | None = None
        while deadline is None or (len(self.consumed) < self.produced and time.monotonic() < deadline):
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.consumed.append(int(message.value()))
            if deadline is None and self._ended.is_set():
                deadline = time.monotonic() + SECONDS
        self._consumer.close()

    def goes_on(self) -> None:
        """Wait until some more records are written and read."""
        read, written = len(self.consumed), self.produced
        wait(lambda: len(self.consumed) > read + 20 and self.produced > written + 20, "the load stands still")

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * SECONDS)


def test_certificates_roll_under_load(certificates: Certificates, tools: ToolProcess, tmp_path: Path) -> None:
    with Secured(tmp_path / "node", certificates, MUTUAL) as broker:
        bootstrap = broker.bootstrap_servers
        with Admin(bootstrap, security=client_security(certificates.of_java())) as admin:
            admin.create_topics([NewTopic("orders", 1, 1)])
        load = Load(bootstrap, certificates.of_librdkafka())
        load.goes_on()
        for _ in range(2):
            renewed = certificates.renew()
            wait(lambda: serial_at(broker.port, certificates) == renewed, "the renewed file is not used")  # noqa: B023
            load.goes_on()
        # By kafka-configs.sh: another type, another file and another password.
        issued = certificates.authority.issue("CN=node", hosts=HOSTS)
        store = certificates.folder / "rolled.p12"
        store.write_bytes(issued.pkcs12("another-secret"))
        prefix = "listener.name.out.ssl.keystore"
        done = alter(
            tools,
            bootstrap,
            certificates.of_java(),
            f"{prefix}.type=PKCS12,{prefix}.location={store},{prefix}.password=another-secret",
        )
        assert "Completed updating config for broker 1" in done
        wait(lambda: serial_at(broker.port, certificates) == serial_of(issued), "the altered store is not used")
        load.goes_on()
        # A wrong one changes nothing.
        store.write_bytes(certificates.authority.issue("CN=other", hosts=HOSTS).pkcs12("another-secret"))
        log = broker.folder / "server.log"
        wait(lambda: "Keystore DistinguishedName does not match" in log.read_text(), "no line of log")
        assert serial_at(broker.port, certificates) == serial_of(issued)
        load.goes_on()
        load.end()
        assert load.failures == []
        assert load.consumed == list(range(load.produced))
        assert not any(secret in log.read_text() for secret in ("another-secret", "BEGIN PRIVATE"))


def test_passwords_roll_under_load(certificates: Certificates, tools: ToolProcess, tmp_path: Path) -> None:
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.folder / "ca.pem")}

    def of_java(module: str, mechanism: str, user: str, password: str) -> dict[str, str]:
        jaas = f'{module} required username="{user}" password="{password}";'
        return {**trust, "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}

    def alice(password: str) -> Any:
        return client_security(of_java(SCRAM, "SCRAM-SHA-512", "alice", password))

    admin = of_java(PLAIN, "PLAIN", "admin", "admin-secret")
    with Secured(tmp_path / "node", certificates, LOGINS) as broker:
        bootstrap = broker.bootstrap_servers

        def give(password: str) -> None:
            added = f"SCRAM-SHA-512=[password={password}]"
            assert "Completed updating config for user alice" in alter(
                tools, bootstrap, admin, added, to="alice", kind="users"
            )

        give("first-secret")
        with Admin(bootstrap, security=alice("first-secret")) as session:
            session.create_topics([NewTopic("orders", 1, 1)])
        load = Load(
            bootstrap,
            {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(certificates.folder / "ca.pem"),
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "alice",
                "sasl.password": "first-secret",
            },
        )
        load.goes_on()
        give("second-secret")
        load.goes_on()
        with Admin(bootstrap, security=alice("second-secret")) as session:
            assert "orders" in [each.name for each in session.list_topics()]
        with (
            pytest.raises(KafkaError, match="Authentication failed during authentication due to invalid credentials"),
            Admin(bootstrap, security=alice("first-secret")) as session,
        ):
            session.list_topics()
        load.goes_on()
        load.end()
        assert load.failures == []
        assert load.consumed == list(range(load.produced))
        assert "secret" not in (broker.folder / "server.log").read_text()


# What both brokers answer to stores that they may not use.

WRONG = {
    "another subject": ("keystore.location={}/other.pem",),
    "fewer names": ("keystore.location={}/fewer.pem",),
    "no such file": ("keystore.location={}/nothing.pem",),
    "not a store": ("keystore.location={}/ca.pem",),
    "a wrong password": ("keystore.type=PKCS12", "keystore.location={}/node.p12", "keystore.password=wrong"),
    "no trust store": ("truststore.location={}/nothing.pem",),
}


def words(out: str, folder: Path) -> str:
    """Return the broker's words, without barnabas's reason in brackets."""
    found = re.search(r"InvalidRequestException: (.*)", out)
    assert found is not None, out
    text = found[1].replace(str(folder), "FOLDER").strip()
    return re.sub(r" \(ssl\..*\) for configuration", " for configuration", text)


@pytest.mark.long
def test_wrong_stores_get_the_same_words(tools: ToolProcess, tmp_path: Path) -> None:
    kafka = SecuredKafka(tmp_path / "kafka")
    folder = kafka.folder
    (folder / "other.pem").write_text(pem(kafka.authority.issue("CN=other,O=Example", hosts=HOSTS)))
    (folder / "fewer.pem").write_text(pem(kafka.authority.issue("CN=node", hosts=["localhost"])))
    (folder / "good.pem").write_text(pem(kafka.authority.issue("CN=node", hosts=HOSTS)))
    (folder / "node.p12").write_bytes(kafka.authority.issue("CN=node", hosts=HOSTS).pkcs12("store-secret"))
    ours = BarnabasProcess(tmp_path / "barnabas")
    ours.folder.mkdir()
    port = apache_kafka.free_port()
    file = ours.folder / "server.properties"
    settings = {
        "listeners": f"PLAINTEXT://{ours.bootstrap_servers},SSL://127.0.0.1:{port}",
        "log.dirs": str(ours.data_dir),
        **{name: text for name, text in kafka.settings.items() if name.startswith("ssl.")},
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    ours.arguments = lambda: ["--config", str(file)]  # type: ignore[method-assign]
    with kafka, ours:
        for name, add in WRONG.items():
            given = [f"listener.name.ssl.ssl.{each}".format(folder) for each in add]
            theirs, own = (words(alter(tools, each.bootstrap_servers, {}, *given), folder) for each in (kafka, ours))
            assert own == theirs, name
        for given, to in (
            (["ssl.keystore.location=/x"], "1"),
            (["listener.name.ssl.ssl.keystore.location=/x"], ""),
        ):
            theirs, own = (
                words(alter(tools, each.bootstrap_servers, {}, *given, to=to), folder) for each in (kafka, ours)
            )
            assert own == theirs, given
        good = f"listener.name.ssl.ssl.keystore.location={folder}/good.pem"
        for each in (kafka, ours):
            assert "Completed updating config for broker 1" in alter(tools, each.bootstrap_servers, {}, good)


def pem(issued: IssuedCertificate) -> str:
    return issued.key + issued.certificate
