"""Listeners with TLS and logins, judged by Apache Kafka's own tools: certificates, PLAIN and SCRAM, and what a wrong password gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import apache_kafka
import pytest

from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.conform.brokers import BarnabasProcess
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, in the types of store that Java reads."""
    made = tmp_path_factory.mktemp("secured")
    authority = DevelopmentAuthority.create(int(time.time() * 1000))
    node = authority.issue("CN=node", hosts=["localhost", "127.0.0.1"])
    (made / "ca.pem").write_text(authority.certificate)
    (made / "node.p12").write_bytes(node.pkcs12("store-secret"))
    (made / "alice.p12").write_bytes(authority.issue("CN=alice,O=Example").pkcs12("store-secret"))
    return made


class SecuredProcess(BarnabasProcess):
    """A node with two listeners; its settings are in a file, because they have secrets."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        super().__init__(folder)
        self.mutual_port = apache_kafka.free_port()
        listeners = f"SASL://127.0.0.1:{self.port},MUTUAL://127.0.0.1:{self.mutual_port}"
        folder.mkdir()
        self.file = folder / "server.properties"
        lines = {"listeners": listeners, "log.dirs": str(self.data_dir), **settings}
        self.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.file)]


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[SecuredProcess]:
    users = 'user_admin="admin-secret"'
    settings = {
        "listener.security.protocol.map": "SASL:SASL_SSL,MUTUAL:SSL",
        "ssl.keystore.location": str(folder / "node.p12"),
        "ssl.keystore.password": "store-secret",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN} required {users};",
    }
    running = SecuredProcess(folder / "node", settings)
    with running:
        yield running


@pytest.fixture(scope="module")
def tools(folder: Path) -> Iterator[ToolProcess]:
    running = ToolProcess(folder / "tools.log")
    yield running
    running.close()


def run(tools: ToolProcess, tool: str, bootstrap: str, settings: dict[str, str], *args: str, stdin: str = "") -> str:
    folder = tools.log.parent
    file = folder / "client.properties"
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    limits = {"default.api.timeout.ms": "20000", "request.timeout.ms": "10000"}
    file.write_text("".join(f"{name}={value}\n" for name, value in {**trust, **limits, **settings}.items()))
    return tools.run(tool, "--bootstrap-server", bootstrap, "--command-config", str(file), *args, stdin=stdin)


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }


def test_tools_of_java(folder: Path, broker: SecuredProcess, tools: ToolProcess) -> None:
    sasl, mutual = broker.bootstrap_servers, f"127.0.0.1:{broker.mutual_port}"
    admin = login("PLAIN", "admin", "admin-secret")
    assert "Created topic orders" in run(tools, "topics", sasl, admin, "--create", "--topic", "orders")
    added = "SCRAM-SHA-512=[password=carol-secret]"
    user = ("--entity-type", "users", "--entity-name", "carol")
    assert "Completed updating" in run(tools, "configs", sasl, admin, "--alter", *user, "--add-config", added)
    carol = login("SCRAM-SHA-512", "carol", "carol-secret")
    run(tools, "console-producer", sasl, carol, "--topic", "orders", stdin="over TLS\n")
    read = ("--topic", "orders", "--from-beginning", "--max-messages", "1")
    assert "over TLS" in run(tools, "console-consumer", sasl, carol, *read)
    store = {"ssl.keystore.location": str(folder / "alice.p12"), "ssl.keystore.password": "store-secret"}
    assert "orders" in run(tools, "topics", mutual, {"security.protocol": "SSL", **store}, "--list")
    refusals = {
        "PLAIN": "Authentication failed: Invalid username or password",
        "SCRAM-SHA-512": "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512",
    }
    for mechanism, words in refusals.items():
        wrong = run(tools, "topics", sasl, login(mechanism, "admin", "wrong"), "--list")
        assert words in wrong
    unknown = run(tools, "topics", mutual, {"security.protocol": "SSL"}, "--list")
    assert unknown.startswith("exit 1")
    # With TLS 1.3 a client has shaken hands before it learns that its certificate is missing, so Java names either moment.
    assert "SSL handshake failed" in unknown or "post-handshake" in unknown
