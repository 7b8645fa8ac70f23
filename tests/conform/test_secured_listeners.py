"""Listeners with TLS and logins, judged by Apache Kafka's own tools: certificates, PLAIN and SCRAM, and what a wrong password gets.

The node's passwords come from a file, by `config.providers`; one of a client's comes from a directory, for Java and for barnabas alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import apache_kafka
import pytest
from confluent_kafka.admin import AdminClient

from barnabas.security.dev_certificates import DevelopmentAuthority
from tests.conform.brokers import BarnabasProcess
from tests.conform.tool_process import ToolProcess
from tests.process import process

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

PROVIDERS = "org.apache.kafka.common.config.provider"
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
    (made / "secrets.properties").write_text("store=store-secret\nadmin=admin-secret\n")
    (made / "passwords").mkdir()
    (made / "passwords" / "admin").write_text("admin-secret")
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
    secrets = f"${{file:{folder}/secrets.properties"
    users = f'user_admin="{secrets}:admin}}"'
    settings = {
        "config.providers": "file",
        "config.providers.file.class": f"{PROVIDERS}.FileConfigProvider",
        "listener.security.protocol.map": "SASL:SASL_SSL,MUTUAL:SSL",
        "ssl.keystore.location": str(folder / "node.p12"),
        "ssl.keystore.password": f"{secrets}:store}}",
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


def test_one_file_with_a_password_from_elsewhere_serves_java_and_barnabas(
    folder: Path, broker: SecuredProcess, tools: ToolProcess
) -> None:
    password = f"${{directory:{folder}/passwords:admin}}"
    providers = {
        "config.providers": "directory",
        "config.providers.directory.class": f"{PROVIDERS}.DirectoryConfigProvider",
        "config.providers.directory.param.allowed.paths": str(folder),
    }
    given = {**providers, **login("PLAIN", "admin", password)}
    assert "exit 0" in run(tools, "topics", broker.bootstrap_servers, given, "--list")
    words = (
        "topic",
        "list",
        "-b",
        broker.bootstrap_servers,
        "--command-config",
        str(tools.log.parent / "client.properties"),
    )
    listed = process.run(*words)
    assert (listed.returncode, listed.stderr) == (0, "")


def test_a_file_of_librdkafkas_names(folder: Path, broker: SecuredProcess) -> None:
    """The same file for confluent-kafka and for a command of barnabas."""
    given = {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(folder / "ca.pem"),
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "admin-secret",
    }
    assert AdminClient({"bootstrap.servers": broker.bootstrap_servers, **given}).list_topics(timeout=30).brokers
    file = folder / "librdkafka.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    listed = process.run("topic", "list", "-b", broker.bootstrap_servers, "--command-config", str(file))
    assert (listed.returncode, listed.stderr) == (0, "")


def test_the_audit_and_the_log(broker: SecuredProcess, tools: ToolProcess) -> None:
    """A login that fails, and a user and a setting that an administrator changes with Java's tools."""
    sasl, admin = broker.bootstrap_servers, login("PLAIN", "admin", "admin-secret")
    run(tools, "topics", sasl, login("PLAIN", "mallory", "wrong-secret"), "--list")
    user = (
        "--alter",
        "--entity-type",
        "users",
        "--entity-name",
        "dave",
        "--add-config",
        "SCRAM-SHA-256=[password=dave-secret]",
    )
    run(tools, "configs", sasl, admin, *user)
    run(
        tools,
        "configs",
        sasl,
        admin,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        "num.io.threads=9",
    )
    log = (broker.folder / "server.log").read_text()
    lines = [line.partition("kafka.authorizer.logger: ")[2] for line in log.splitlines()]
    start = "Principal = User:admin from host = 127.0.0.1 has"
    failed = "Failed login from host = 127.0.0.1 on listener = SASL: failed authentication by PLAIN: "
    assert f"{failed}Authentication failed: Invalid username or password: user mallory" in lines
    assert f"{start} set the SCRAM-SHA-256 credential of user dave for request = AlterUserScramCredentials" in lines
    assert (
        f"{start} altered settings of broker default: num.io.threads=9 for request = IncrementalAlterConfigs" in lines
    )
    assert not [word for word in ("admin-secret", "store-secret", "dave-secret", "wrong-secret") if word in log]
