"""Delegation tokens on both brokers: Kafka's tool prints the same, and Java's clients and ours log in with a token of either."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka, free_port

from barnabas.client.admin import Admin
from barnabas.client.delegation_tokens import DelegationToken
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.client_security import client_security
from barnabas.security.principal import Principal
from tests.conform.brokers import BarnabasProcess
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

MODULES = "org.apache.kafka.common.security."
PLAIN, SCRAM = f"{MODULES}plain.PlainLoginModule", f"{MODULES}scram.ScramLoginModule"
USERS = ("admin", "alice", "bob", "carol")
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f"{PLAIN} required " + " ".join(f'user_{name}="{name}-secret"' for name in USERS) + ";"
    ),
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
    "delegation.token.secret.key": "a secret of the cluster",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "connection.failed.authentication.delay.ms": "0",
}


class OurTokens(BarnabasProcess):
    """A node with a listener of users; its settings are in a file, because they have secrets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sasl = f"127.0.0.1:{free_port()}"
        folder.mkdir()
        lines = {
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},SASL://{self.sasl}",
            "log.dirs": str(self.data_dir),
            **SETTINGS,
        }
        (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.folder / "server.properties")]


class TheirTokens(ApacheKafka):
    """The same of Apache Kafka."""

    name = "apache-kafka"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sasl = f"127.0.0.1:{free_port()}"
        self.settings = {**SETTINGS, "listeners": f"{self.properties()['listeners']},SASL://{self.sasl}"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OurTokens | TheirTokens, ...]]:
    folder = tmp_path_factory.mktemp("tokens")
    with TheirTokens(folder / "kafka") as theirs, OurTokens(folder / "barnabas") as ours:
        yield theirs, ours


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolProcess]:
    running = ToolProcess(tmp_path_factory.mktemp("tools") / "tools.log")
    yield running
    running.close()


def password_of(user: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="{user}" password="{user}-secret";',
    }


def login_with(token_id: str, hmac: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM} required username="{token_id}" password="{hmac}" tokenauth="true";',
    }


class Transcript:
    """What Kafka's tools print on one broker, with the same names for the tokens of both."""

    def __init__(self, tools: ToolProcess, broker: OurTokens | TheirTokens) -> None:
        self._tools = tools
        self._broker = broker
        self._names: dict[str, str] = {}
        self._printed: list[str] = []

    def run(self, tool: str, settings: dict[str, str], *args: str) -> str:
        """Run a tool, note what it prints, and return it as it is."""
        file = self._tools.log.parent / "client.properties"
        limits = {"default.api.timeout.ms": "20000", "request.timeout.ms": "10000", **settings}
        file.write_text("".join(f"{name}={value}\n" for name, value in limits.items()))
        address = self._broker.sasl if settings else self._broker.bootstrap_servers
        words = ("--bootstrap-server", address, "--command-config", str(file), *args)
        printed = self._tools.run(tool, *words)
        self._printed.append(f"$ {tool} {' '.join(args)}\n{printed}")
        return printed

    def lines(self) -> list[str]:
        """Return all that was printed, without Java's stack traces, sorted for each tool: Apache Kafka's tokens are in a hash table."""
        return [
            line
            for each in self._printed
            for line in sorted(self._normal(each).splitlines())
            if not re.match(r"\s*(at |\.\.\. )", line)
        ]

    def create(self, name: str, user: str, *args: str) -> tuple[str, str]:
        """Create a token, and return its id and its HMAC."""
        printed = self.run("delegation-tokens", password_of(user), "--create", "--max-life-time-period", "-1", *args)
        token_id, hmac = re.findall(r"^([\w-]{22}) +([\w+/]{86}==)", printed, re.M)[0]
        self._names |= {token_id: f"(id of {name})", hmac: f"(HMAC of {name})"}
        return token_id, hmac

    def _normal(self, text: str) -> str:
        for secret, name in self._names.items():
            text = text.replace(secret, name)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "(time)", text)
        return re.sub(r" {2,}", "  ", text.replace(self._broker.sasl, "(address)"))


def played(tools: ToolProcess, broker: OurTokens | TheirTokens) -> list[str]:
    """Play all that the tool does, and what it must not do."""
    seen = Transcript(tools, broker)
    token = "delegation-tokens"
    one = seen.create("one", "alice", "--renewer-principal", "User:bob")
    seen.create("two", "admin", "--owner-principal", "User:carol")
    seen.run(token, password_of("alice"), "--create", "--max-life-time-period", "-1", "--owner-principal", "User:carol")
    seen.run(token, password_of("alice"), "--create", "--max-life-time-period", "1", "--renewer-principal", "Group:g")
    seen.run(
        token, password_of("bob"), "--describe", "--owner-principal", "User:alice", "--owner-principal", "User:carol"
    )
    seen.run(token, password_of("carol"), "--renew", "--renew-time-period", "-1", "--hmac", one[1])
    seen.run(token, password_of("bob"), "--renew", "--renew-time-period", "-1", "--hmac", one[1])
    seen.run(token, password_of("bob"), "--renew", "--renew-time-period", "-1", "--hmac", "YWJj")
    seen.run(token, {}, "--describe", "--owner-principal", "User:alice")
    assert seen.run("topics", login_with(*one), "--list").startswith("exit 0")
    seen.run(token, login_with(*one, "SCRAM-SHA-256"), "--describe", "--owner-principal", "User:alice")
    seen.run(token, password_of("alice"), "--expire", "--expiry-time-period", "-1", "--hmac", one[1])
    refused = seen.run("topics", login_with(*one), "--list")
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in refused
    return seen.lines()


def test_kafkas_tool_prints_the_same(brokers: tuple[OurTokens | TheirTokens, ...], tools: ToolProcess) -> None:
    theirs, ours = (played(tools, broker) for broker in brokers)
    assert ours == theirs


def test_our_client_does_the_same_on_both(brokers: tuple[OurTokens | TheirTokens, ...]) -> None:
    seen = [asked(broker) for broker in brokers]
    assert seen[0] == seen[1]
    assert seen[1] == [
        ("alice", "alice", ("bob",), 60_000, 60_000),
        ["User:alice"],
        ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
        30_000,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    ]


def await_login(broker: OurTokens | TheirTokens, settings: dict[str, str]) -> None:
    """Log in; Apache Kafka's broker learns of a token after its controller has answered."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with Admin(broker.sasl, security=client_security(settings)) as owner:
                owner.list_topics()
                return
        except KafkaError as error:
            if error.code is not ErrorCode.SASL_AUTHENTICATION_FAILED or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def asked(broker: OurTokens | TheirTokens) -> list[object]:
    """Return what our client sees of one broker."""

    def code_of(settings: dict[str, str], ask: Callable[[Admin], object]) -> ErrorCode:
        with Admin(broker.sasl, security=client_security(settings)) as admin, pytest.raises(KafkaError) as raised:
            ask(admin)
        return raised.value.code

    with Admin(broker.sasl, security=client_security(password_of("alice"))) as alice:
        made = alice.create_token(renewers=[Principal("User", "bob")], max_lifetime_ms=60_000)
        with_token = login_with(made.token_id, base64.b64encode(made.hmac).decode(), "SCRAM-SHA-256")
        await_login(broker, with_token)
        seen: list[object] = [
            _about(made),
            [str(each.owner) for each in alice.describe_tokens() if each.token_id == made.token_id],
            code_of(with_token, lambda admin: admin.create_token()),
            code_of(password_of("carol"), lambda admin: admin.renew_token(made.hmac)),
            alice.expire_token(made.hmac, period_ms=30_000) - made.issued_ms > 29_000 and 30_000,
        ]
        wrong = login_with(made.token_id, base64.b64encode(made.hmac[::-1]).decode(), "SCRAM-SHA-256")
        seen.append(code_of(wrong, lambda admin: admin.list_topics()))
        alice.expire_token(made.hmac)
        deadline = time.monotonic() + 60
        while any(each.token_id == made.token_id for each in alice.describe_tokens()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        seen.append(code_of(with_token, lambda admin: admin.list_topics()))
    return seen


def _about(made: DelegationToken) -> tuple[object, ...]:
    names = tuple(each.name for each in made.renewers)
    return made.owner.name, made.requester.name, names, made.expires_ms - made.issued_ms, made.max_ms - made.issued_ms
