"""Listeners with OAUTHBEARER, judged by Kafka's tools and by librdkafka, which get signed tokens from a token server on loopback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from joserfc.jwk import ECKey

from tests.conform.brokers import BarnabasProcess
from tests.conform.tool_process import ToolProcess
from tests.token_server import AUDIENCE, ISSUER, TokenServer

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

MODULE = "org.apache.kafka.common.security.oauthbearer"
INVALID = '{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer() as made:
        yield made


class BearerProcess(BarnabasProcess):
    """A node whose only listener takes tokens; Kafka's settings, as a server.properties has them."""

    def __init__(self, folder: Path, keys: str) -> None:
        super().__init__(folder)
        folder.mkdir()
        self.file = folder / "server.properties"
        lines = {
            "listeners": f"OUT://{self.bootstrap_servers}",
            "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
            "log.dirs": str(self.data_dir),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.out.oauthbearer.sasl.jaas.config": f"{MODULE}.OAuthBearerLoginModule required;",
            "listener.name.out.oauthbearer.sasl.server.callback.handler.class": f"{MODULE}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "listener.name.out.sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.out.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        }
        self.file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.file)]


@pytest.fixture(scope="module")
def broker(server: TokenServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BearerProcess]:
    with BearerProcess(tmp_path_factory.mktemp("bearer") / "node", f"{server.url}/keys") as running:
        yield running


@pytest.fixture(scope="module")
def tools(server: TokenServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolProcess]:
    running = ToolProcess(tmp_path_factory.mktemp("tools") / "tools.log")
    running.command[1:1] = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={server.url}/token"]
    yield running
    running.close()


def run(
    tools: ToolProcess, broker: BearerProcess, server: TokenServer, tool: str, *args: str, stdin: str | None = None
) -> str:
    """Run one of Kafka's tools, which asks the server for a token of alice."""
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{MODULE}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        "sasl.jaas.config": f'{MODULE}.OAuthBearerLoginModule required clientId="alice" clientSecret="alice-secret";',
        "default.api.timeout.ms": "20000",
        "request.timeout.ms": "10000",
    }
    file = tools.log.parent / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return tools.run(
        tool, "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file), *args, stdin=stdin
    )


def oidc(broker: BearerProcess, server: TokenServer, **more: Any) -> dict[str, Any]:
    """Return librdkafka's settings: it asks the token server itself."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.client.secret": "alice-secret",
        **more,
    }


def until(met: Callable[[], bool], step: Callable[[], Any], seconds: float = 30) -> None:
    """Do a step until a condition is met."""
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, "it did not come in time"
        step()


def test_tools_of_java_and_librdkafka_log_in(broker: BearerProcess, server: TokenServer, tools: ToolProcess) -> None:
    run(tools, broker, server, "console-producer", "--topic", "orders", stdin="of Java\n")
    consumer = Consumer(oidc(broker, server, **{"group.id": "g"}))
    consumer.assign([TopicPartition("orders", 0, 0)])
    read: list[bytes | None] = []

    def poll() -> None:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.append(message.value())

    until(lambda: bool(read), poll)
    assert read == [b"of Java"]
    consumer.close()


def test_a_renewed_key_under_running_connections(
    broker: BearerProcess, server: TokenServer, tools: ToolProcess
) -> None:
    """Tokens of three seconds; in the middle the server signs with another key and publishes it alone."""
    failed: list[str] = []
    server.lifetime_s = 3
    try:
        producer = Producer(oidc(broker, server, **{"enable.idempotence": True, "linger.ms": 0}))
        delivered: list[int] = []

        def told(error: KafkaError | None, message: Any) -> None:
            failed.extend([] if error is None else [str(error)])
            delivered.append(message.offset())

        def produce() -> None:
            producer.produce("renewed", b"%d" % len(delivered), on_delivery=told)
            assert producer.flush(20) == 0

        def tokens() -> int:
            return server.asked.count("/token")

        until(lambda: len(delivered) >= 3, produce)
        before = tokens()
        server.renew_key()
        until(lambda: tokens() >= before + 2, produce)
        count = len(delivered)
        until(lambda: len(delivered) >= count + 50, produce)
    finally:
        server.lifetime_s = 600
    assert failed == []
    assert server.asked.count("/keys") >= 2
    # Java reads all of them, once each, with a token of the new key; its last line is the count.
    read = run(
        tools, broker, server, "console-consumer", "--topic", "renewed", "--from-beginning",
        "--max-messages", str(len(delivered)),
    )  # fmt: skip
    assert [int(line) for line in read.splitlines() if line.isdecimal()] == list(range(len(delivered)))


def test_wrong_tokens_are_refused_with_one_text(broker: BearerProcess, server: TokenServer) -> None:
    now = int(time.time())
    stranger = ECKey.generate_key("P-256", {"kid": server.key.kid})
    tokens = {
        "expired": server.token("alice", exp=now - 60, iat=now - 120),
        "issuer": server.token("alice", iss="https://elsewhere.example.org"),
        "audience": server.token("alice", aud="another"),
        "key": server.token("alice", key=stranger),
    }
    texts: dict[str, list[str]] = {}
    for why, token in tokens.items():
        said = texts.setdefault(why, [])

        def give(config: str, given: str = token) -> tuple[str, float]:
            return given, time.time() + 600

        def keep(error: KafkaError, said: list[str] = said) -> None:
            if error.code() == KafkaError._AUTHENTICATION:
                said.append(error.str())

        settings = oidc(broker, server, error_cb=keep, oauth_cb=give, **{"sasl.oauthbearer.method": "default"})
        for name in ("token.endpoint.url", "client.id", "client.secret"):
            del settings[f"sasl.oauthbearer.{name}"]
        admin = AdminClient(settings)
        until(lambda said=said: bool(said), lambda admin=admin: admin.poll(0.1))  # type: ignore[misc]
    assert {INVALID in said[0] for said in texts.values()} == {True}
    lines = (broker.folder / "server.log").read_text()
    assert not any(token in lines for token in tokens.values())
