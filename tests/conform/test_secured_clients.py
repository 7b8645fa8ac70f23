"""Commands, and clients that Python programs use, at Apache Kafka's secured listeners, with a file of Java's settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barnabas
from barnabas.client.channel import Channel
from barnabas.client.cluster import Cluster
from barnabas.client.errors import OtherSecurity
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.client_security import client_security
from tests.cli.test_commands import run
from tests.conform.secured_kafka import (
    MECHANISMS,
    PASSWORD,
    SCRAM_PASSWORD,
    STORE_PASSWORD,
    SecuredKafka,
    properties_text,
)

pytestmark = pytest.mark.conform

WAYS = [
    ("SSL", "", "PEM"),
    ("SSL", "", "PKCS12"),
    *(("SASL_PLAINTEXT", each, "PEM") for each in MECHANISMS),
    *(("SASL_SSL", each, "PEM") for each in MECHANISMS),
    ("SASL_SSL", "SCRAM-SHA-512", "PKCS12"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("secured")) as node:
        yield node


def file_of(folder: Path, settings: dict[str, str]) -> str:
    path = folder / "client.properties"
    path.write_text(properties_text(settings))
    return str(path)


def fails(*arguments: str) -> str:
    """Run a command that fails; return its one line."""
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    for secret in (PASSWORD, SCRAM_PASSWORD, STORE_PASSWORD):
        assert secret not in result.output
    return str(line)


@pytest.mark.parametrize(("protocol", "mechanism", "stores"), WAYS)
def test_commands(kafka: SecuredKafka, tmp_path: Path, protocol: str, mechanism: str, stores: str) -> None:
    config = file_of(tmp_path, kafka.client(protocol, mechanism, stores))
    topic = f"orders-{protocol}-{mechanism}-{stores}".lower().rstrip("-")

    def done(*arguments: str, given: str = "") -> str:
        result = run(*arguments, "--command-config", config, given=given)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    done("topic", "create", topic, "-p", "2")
    assert topic in done("topic", "list")
    assert len(json.loads(done("topic", "describe", topic, "-o", "json"))[0]["partitions"]) == 2
    assert "retention.ms" in done("config", "describe", "topic", topic, "--all")
    done("produce", topic, given="one\ntwo\nthree\n")
    assert sorted(done("consume", topic, "-e", "-g", f"{topic}-group").split()) == ["one", "three", "two"]
    assert f"{topic}-group" in done("group", "list")
    assert topic in done("group", "describe", f"{topic}-group")
    assert "LEADER" in done("cluster", "quorum").upper()


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512")])
def test_topics_as_arrow_and_in_sql(kafka: SecuredKafka, tmp_path: Path, protocol: str, mechanism: str) -> None:
    settings = kafka.client(protocol, mechanism)
    config = file_of(tmp_path, settings)
    topic = f"arrow-{protocol}".lower()
    for arguments, given in ((("topic", "create", topic), ""), (("produce", topic), "one\ntwo\n")):
        assert run(*arguments, "--command-config", config, given=given).exit_code == 0
    records = barnabas.read(topic, bootstrap=settings["bootstrap.servers"], security=settings, columns=["value"])
    assert [row["value"] for row in records.table().to_pylist()] == [b"one", b"two"]
    counted = run("sql", f'SELECT count(*) AS n FROM "{topic}"', "-o", "json", "--command-config", config)
    assert (counted.exit_code, json.loads(counted.stdout)) == (0, [{"n": 2}])


@pytest.mark.parametrize(("protocol", "mechanism"), [("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512")])
def test_verify(kafka: SecuredKafka, tmp_path: Path, protocol: str, mechanism: str) -> None:
    config = file_of(tmp_path, kafka.client(protocol, mechanism))
    result = run("verify", "--time", "5", "--plain", "1", "--txn", "1", "--transform", "1", "--command-config", config)
    assert result.exit_code == 0, result.output


def test_mirror_between_two_listeners(kafka: SecuredKafka, tmp_path: Path) -> None:
    """The two sides are one cluster here, which the mirror finds out by asking both."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    source = file_of(tmp_path / "a", kafka.client("SSL"))
    target = file_of(tmp_path / "b", kafka.client("SASL_SSL", "PLAIN"))
    addresses = [f"127.0.0.1:{kafka.ports[name]}" for name in ("SSL", "SASL_SSL")]
    line = fails("mirror", *addresses, "--source-config", source, "--target-config", target)
    assert "are the same cluster" in line


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_a_wrong_password(kafka: SecuredKafka, tmp_path: Path, mechanism: str) -> None:
    settings = kafka.client("SASL_SSL", mechanism)
    login = settings["sasl.jaas.config"]
    settings["sasl.jaas.config"] = login[: login.index("password=")] + 'password="wrong-secret";'
    line = fails("topic", "list", "--command-config", file_of(tmp_path, settings))
    assert f"login at 127.0.0.1:{kafka.ports['SASL_SSL']} with {mechanism} failed: Authentication failed" in line
    assert "wrong-secret" not in line


def test_a_mechanism_that_the_listener_does_not_offer(kafka: SecuredKafka) -> None:
    security = client_security(kafka.client("SASL_PLAINTEXT", "PLAIN"))
    assert security is not None
    settings = dict(security.settings) | {"sasl.mechanism": "PLAIN"}
    made = client_security(settings)
    assert made is not None

    class Other:
        name = "SCRAM-SHA-1"

        def begin(self) -> bytes:
            raise AssertionError

        def respond(self, challenge: bytes) -> bytes | None:
            raise AssertionError

    other = type(made)(made.protocol, "SCRAM-SHA-1", mechanism=lambda host: Other(), settings=made.settings)
    with pytest.raises(KafkaError) as raised:
        BlockingConnection("127.0.0.1", kafka.ports["SASL_PLAINTEXT"], security=other)
    assert raised.value.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    offered = raised.value.message.partition("it offers ")[2].split(", ")
    assert sorted(offered) == sorted(MECHANISMS)


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism", "words"),
    [
        ("PLAINTEXT", "SSL", "", "is a listener without TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
        ("SASL_PLAINTEXT", "SASL_SSL", "PLAIN", "is a listener without TLS: set security.protocol to SASL_PLAINTEXT"),
        ("SSL", "PLAINTEXT", "", "is a listener with TLS: set security.protocol to SSL or SASL_SSL"),
        ("SASL_SSL", "SASL_PLAINTEXT", "PLAIN", "is a listener with TLS: set security.protocol to SASL_SSL"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "", "is a listener with SASL: set security.protocol=SASL_PLAINTEXT and sasl.mechanism"),
        ("SASL_SSL", "SSL", "", "is a listener with SASL: set security.protocol=SASL_SSL and sasl.mechanism"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "PLAIN", "is a listener without SASL: set security.protocol=PLAINTEXT"),
        ("SSL", "SASL_SSL", "PLAIN", "ssl.keystore.location"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_the_listener(
    kafka: SecuredKafka, tmp_path: Path, listener: str, protocol: str, mechanism: str, words: str
) -> None:
    settings = kafka.client(protocol, mechanism)
    port = kafka.ports.get(listener, kafka.port)
    line = fails("topic", "list", "--command-config", file_of(tmp_path, settings), "-b", f"127.0.0.1:{port}")
    assert f"127.0.0.1:{port}" in line
    assert words in line


def test_certificates_that_are_not_trusted(kafka: SecuredKafka, tmp_path: Path) -> None:
    """The system's authorities do not know ours; the node's certificate has no such name; ours is missing."""
    trusted = kafka.client("SSL")
    unknown = {name: value for name, value in trusted.items() if "truststore" not in name}
    line = fails("topic", "list", "--command-config", file_of(tmp_path, unknown))
    assert "is not trusted" in line
    assert "ssl.truststore.location" in line
    missing = {name: value for name, value in trusted.items() if "keystore" not in name}
    line = fails("topic", "list", "--command-config", file_of(tmp_path, missing))
    assert "ssl.keystore.location" in line


@pytest.mark.parametrize("mechanism", ["PLAIN"])
def test_a_session_is_renewed_before_it_ends(kafka: SecuredKafka, mechanism: str) -> None:
    """Asks all the time, for longer than two sessions: the broker would close a connection whose session has ended."""
    settings = kafka.client("SASL_PLAINTEXT", mechanism)
    security = client_security(settings)
    with BlockingConnection("127.0.0.1", kafka.ports["SASL_PLAINTEXT"], security=security) as connection:
        renewals, due = 0, connection.renews_login_at
        assert due is not None
        while renewals < 2:
            connection.request(messages.MetadataRequest(topics=[]))
            if connection.renews_login_at != due:
                renewals, due = renewals + 1, connection.renews_login_at


@pytest.mark.parametrize(
    ("protocol", "mechanism"), [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256")]
)
def test_a_channel(kafka: SecuredKafka, protocol: str, mechanism: str) -> None:
    import asyncio

    async def run_it() -> Any:
        loop = asyncio.get_running_loop()
        security = client_security(kafka.client(protocol, mechanism))
        channel = Channel(loop, "127.0.0.1", kafka.ports[protocol], client_id="me", security=security)
        try:
            first = await channel.request(messages.MetadataRequest(topics=[]))
            connection = channel.connection
            assert connection is not None
            if (due := connection.renews_login_at) is not None:
                while connection.renews_login_at == due:
                    await channel.request(messages.MetadataRequest(topics=[]))
                assert channel.connection is connection
            return first
        finally:
            channel.close()

    assert asyncio.run(run_it()).brokers[0].node_id == 1


def test_a_channel_whose_certificate_is_missing(kafka: SecuredKafka) -> None:
    import asyncio

    settings = {name: value for name, value in kafka.client("SSL").items() if "keystore" not in name}

    async def run_it() -> None:
        loop = asyncio.get_running_loop()
        security = client_security(settings)
        channel = Channel(loop, "127.0.0.1", kafka.ports["SSL"], client_id="me", security=security)
        try:
            with pytest.raises(OtherSecurity, match=r"ssl\.keystore\.location"):
                await channel.request(messages.MetadataRequest(topics=[]))
        finally:
            channel.close()

    asyncio.run(run_it())


def test_another_host_name(kafka: SecuredKafka) -> None:
    security = client_security(kafka.client("SASL_SSL", "PLAIN"))
    with (
        Cluster(f"127.0.0.2:{kafka.ports['SASL_SSL']}", security=security, timeout_ms=2000) as cluster,
        pytest.raises(KafkaError),
    ):
        cluster.metadata()
