"""SaslAuthenticate: the principal of the connection, the end of the login, and Kafka's words for a wrong password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.security.principal import ANONYMOUS, Principal
from tests.api.logging_in import serving_logins
from tests.api.served_node import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = serving_logins(tmp_path, max_reauth_ms=60_000)
    yield node
    node.close()


def token(user: str, password: str) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())


@pytest.mark.parametrize(("version", "lifetime_ms"), [(0, 0), (1, 60_000), (2, 60_000)])
def test_a_right_password(serving: Serving, version: int, lifetime_ms: int) -> None:
    serving.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    answer = serving.ask(token("alice", "secret"), version)
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
    assert version == 0 or answer.session_lifetime_ms == lifetime_ms
    assert serving.connection.principal == Principal("User", "alice")


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_wrong_password_and_an_unknown_user_get_the_same_words(serving: Serving, user: str) -> None:
    serving.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    answer = serving.ask(token(user, "guess"))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert serving.connection.principal == ANONYMOUS


def test_after_the_login(serving: Serving) -> None:
    serving.ask(SaslHandshakeRequest(mechanism="PLAIN"))
    serving.ask(token("alice", "secret"))
    assert serving.ask(token("alice", "secret")).error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_listener_without_sasl(serving: Serving) -> None:
    serving.connection.login = None
    answer = serving.ask(token("alice", "secret"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
