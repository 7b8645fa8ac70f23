"""Kafka's tools over SASL_SSL print the same on both brokers: delegation tokens, ACLs, users, console and loads.

Java's clients and ours log in with a delegation token of either broker.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator

import pytest

from barnabas.client.admin import Admin
from barnabas.client.delegation_tokens import DelegationToken
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.client_security import client_security
from barnabas.security.principal import Principal
from tests.conform.brokers_of_users import OurUsers, TheirUsers, Transcript, login_with, password_of, scram
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OurUsers | TheirUsers, ...]]:
    folder = tmp_path_factory.mktemp("tokens")
    with TheirUsers(folder / "kafka") as theirs, OurUsers(folder / "barnabas") as ours:
        yield theirs, ours


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolProcess]:
    running = ToolProcess(tmp_path_factory.mktemp("tools") / "tools.log")
    yield running
    running.close()


def tokens_played(tools: ToolProcess, broker: OurUsers | TheirUsers) -> list[str]:
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


def test_the_tool_of_tokens_prints_the_same(brokers: tuple[OurUsers | TheirUsers, ...], tools: ToolProcess) -> None:
    theirs, ours = (tokens_played(tools, broker) for broker in brokers)
    assert ours == theirs


def others_played(tools: ToolProcess, broker: OurUsers | TheirUsers) -> list[str]:
    """Play the other tools: an administrator makes a user and its ACLs, and the user writes, reads and measures."""
    seen = Transcript(tools, broker)
    admin, dave = password_of("admin"), scram("dave", "dave-secret")
    user = ("--entity-type", "users", "--entity-name", "dave")
    seen.run("topics", admin, "--create", "--topic", "orders", "--partitions", "1")
    seen.run("configs", admin, "--alter", *user, "--add-config", "SCRAM-SHA-512=[iterations=4096,password=dave-secret]")
    seen.run("configs", admin, "--describe", *user)
    await_login(broker, dave)
    seen.run("topics", dave, "--list")
    seen.run("acls", dave, "--list")
    seen.run(
        "producer-perf",
        dave,
        *["--topic", "orders", "--num-records", "1", "--record-size", "9", "--throughput", "-1"],
        is_load=True,
    )
    allow = ("--add", "--allow-principal", "User:dave")
    seen.run("acls", admin, *allow, "--producer", "--consumer", "--topic", "orders", "--group", "*")
    seen.run("acls", admin, "--list", "--topic", "orders")
    until_allowed(broker, dave, "orders")
    seen.run("console-producer", dave, "--topic", "orders", stdin="one\ntwo\n")
    seen.run(
        "console-consumer",
        dave,
        *["--topic", "orders", "--from-beginning", "--max-messages", "2", "--group", "readers"],
    )
    load = "--topic orders --num-records 2000 --record-size 200 --throughput -1"
    seen.run("producer-perf", dave, *load.split(), is_load=True)
    seen.run("consumer-perf", dave, *["--topic", "orders", "--num-records", "2000", "--timeout", "60000"], is_load=True)
    latency = "--topic orders --num-records 20 --producer-acks all --record-size 100"
    seen.run("e2e-latency", dave, *latency.split(), is_load=True)
    seen.run("acls", admin, "--remove", "--force", "--topic", "orders")
    seen.run("acls", admin, "--list")
    seen.run("configs", admin, "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    seen.run("configs", admin, "--describe", *user)
    return seen.lines()


def until_allowed(broker: OurUsers | TheirUsers, settings: dict[str, str], topic: str) -> None:
    """Wait until a user sees a topic; Apache Kafka's broker learns of ACLs after its controller has answered."""
    deadline = time.monotonic() + 60
    with Admin(broker.sasl, security=client_security(broker.trust() | settings)) as admin:
        while topic not in [each.name for each in admin.list_topics()]:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_the_other_tools_print_the_same(brokers: tuple[OurUsers | TheirUsers, ...], tools: ToolProcess) -> None:
    theirs, ours = (others_played(tools, broker) for broker in brokers)
    assert ours == theirs
    assert [line for line in ours if line.startswith("exit ")].count("exit 0") == 16
    assert any(line.startswith("N records sent") for line in ours)
    assert any(line.startswith("Avg latency: N ms") for line in ours)


def test_our_client_does_the_same_on_both(brokers: tuple[OurUsers | TheirUsers, ...]) -> None:
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


def await_login(broker: OurUsers | TheirUsers, settings: dict[str, str]) -> None:
    """Log in; Apache Kafka's broker learns of a token after its controller has answered."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with Admin(broker.sasl, security=client_security(broker.trust() | settings)) as owner:
                owner.list_topics()
                return
        except KafkaError as error:
            if error.code is not ErrorCode.SASL_AUTHENTICATION_FAILED or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def asked(broker: OurUsers | TheirUsers) -> list[object]:
    """Return what our client sees of one broker."""

    def code_of(settings: dict[str, str], ask: Callable[[Admin], object]) -> ErrorCode:
        with (
            Admin(broker.sasl, security=client_security(broker.trust() | settings)) as admin,
            pytest.raises(KafkaError) as raised,
        ):
            ask(admin)
        return raised.value.code

    with Admin(broker.sasl, security=client_security(broker.trust() | password_of("alice"))) as alice:
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
