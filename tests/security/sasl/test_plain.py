"""PLAIN: both sides, and Kafka's texts for what is wrong."""

from __future__ import annotations

import pytest

from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.plain import PlainClient, PlainServer

USERS = {"alice": "alice-secret", "ünïcode": "pass, wörd=1"}


def server() -> PlainServer:
    return PlainServer(USERS.get)


@pytest.mark.parametrize("user", USERS)
def test_a_user_logs_in(user: str) -> None:
    client, machine = PlainClient(user, USERS[user]), server()
    answer = machine.respond(client.begin())
    assert answer == b""
    assert client.respond(answer) is None
    assert machine.is_finished
    assert machine.principal == Principal("User", user)
    assert machine.lifetime_ms is None


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0bob\0alice-secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0alice-secret\xff", "Authentication failed: Invalid username or password"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 1000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_what_is_wrong_gets_kafkas_text(token: bytes, text: str) -> None:
    machine = server()
    with pytest.raises(LoginFailed) as failed:
        machine.respond(token)
    assert failed.value.text == text
    assert not machine.is_finished
    assert "alice-secret" not in failed.value.why


def test_a_user_may_name_itself_as_authorization_id() -> None:
    machine = server()
    assert machine.respond(b"alice\0alice\0alice-secret") == b""
    assert machine.principal.name == "alice"


def test_the_operator_reads_who_failed_on_one_line() -> None:
    with pytest.raises(LoginFailed) as failed:
        server().respond(b"\0mallory\n\x1b[2J\0guess")
    assert failed.value.why == r"Authentication failed: Invalid username or password: user mallory\n\x1b[2J"


def test_a_challenge_is_not_answered() -> None:
    client = PlainClient("alice", "alice-secret")
    client.begin()
    with pytest.raises(LoginFailed):
        client.respond(b"what?")


def test_reprs_have_no_password() -> None:
    assert repr(PlainClient("alice", "alice-secret")) == "<PlainClient 'alice'>"
    assert "alice-secret" not in repr(server())
