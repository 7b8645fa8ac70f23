"""The login's requests and answers, with a machine that says `one`, then `two`."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import OtherSecurity
from barnabas.client.exchange import Exchange
from barnabas.client.login import login, login_version, renewed_after_s
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.client_security import ClientSecurity
from barnabas.security.sasl.mechanism import LoginFailed

RANGES = {ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 1)}


class Machine:
    """Logs in with two tokens, and expects `right` at the end."""

    name = "PLAIN"

    def __init__(self, host: str) -> None:
        self.host = host

    def begin(self) -> bytes:
        return f"one {self.host}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge == b"more":
            return b"two"
        if challenge != b"right":
            raise LoginFailed("the broker does not know the password")
        return None


def play(
    *answers: Any, versions: dict[int, tuple[int, int]] = RANGES, protocol: str = "SASL_SSL"
) -> tuple[list[Any], Any]:
    """Answer the requests of a login in turn; return the requests, and the result or the error."""
    exchange = Exchange("h:1", "me")
    exchange.versions = versions
    steps = login(exchange, ClientSecurity(protocol, "PLAIN", mechanism=Machine), "h")
    asked = []
    try:
        asked.append(next(steps))
        for answer in answers:
            asked.append(steps.send(answer))
    except StopIteration as finished:
        return asked, finished.value
    except KafkaError as error:
        return asked, error
    raise AssertionError(f"the login goes on after {asked}")


OK = messages.SaslHandshakeResponse(mechanisms=["PLAIN"])


def said(data: bytes, lifetime_ms: int = 0) -> messages.SaslAuthenticateResponse:
    return messages.SaslAuthenticateResponse(auth_bytes=data, session_lifetime_ms=lifetime_ms)


def test_a_handshake_and_as_many_tokens_as_the_mechanism_needs() -> None:
    asked, lifetime_ms = play(OK, said(b"more"), said(b"right", 60_000))
    assert [type(each).__name__ for each in asked] == ["SaslHandshakeRequest", *["SaslAuthenticateRequest"] * 2]
    assert asked[0].mechanism == "PLAIN"
    assert [each.auth_bytes for each in asked[1:]] == [b"one h", b"two"]
    assert lifetime_ms == 60_000


def test_a_rejected_login_has_the_brokers_text_and_is_final() -> None:
    text = "Authentication failed: Invalid username or password"
    rejected = messages.SaslAuthenticateResponse(error_code=58, error_message=text)
    _, error = play(OK, rejected)
    assert error.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not error.code.retriable
    assert error.message == f"login at h:1 with PLAIN failed: {text}"


def test_a_broker_that_proves_nothing_is_not_believed() -> None:
    _, error = play(OK, said(b"wrong"))
    assert error.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert error.message.endswith("failed: the broker does not know the password")


def test_another_mechanism_names_those_that_the_broker_offers() -> None:
    refused = messages.SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-256", "OAUTH\nBEARER"])
    _, error = play(refused)
    assert error.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert error.message == (
        r"the broker h:1 does not offer sasl.mechanism=PLAIN; it offers SCRAM-SHA-256, OAUTH\nBEARER"
    )


@pytest.mark.parametrize(("protocol", "wanted"), [("SASL_SSL", "SSL"), ("SASL_PLAINTEXT", "PLAINTEXT")])
def test_a_listener_without_logins(protocol: str, wanted: str) -> None:
    words = f"h:1 is a listener without SASL: set security.protocol={wanted}"
    _, kafkas = play(messages.SaslHandshakeResponse(error_code=34), protocol=protocol)
    asked, ours = play(versions={ApiKey.METADATA: (0, 12)}, protocol=protocol)
    assert asked == []
    for error in (kafkas, ours):
        assert isinstance(error, OtherSecurity)
        assert error.message == words


def test_another_error_of_the_handshake_keeps_its_code() -> None:
    _, error = play(messages.SaslHandshakeResponse(error_code=-1))
    assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_versions_are_those_of_both_sides_if_they_are_known() -> None:
    exchange = Exchange("h:1", "me")
    request = messages.SaslAuthenticateRequest()
    assert login_version(exchange, request) == 2
    exchange.versions = RANGES
    assert login_version(exchange, request) == 1


def test_a_login_is_renewed_before_the_session_ends() -> None:
    assert renewed_after_s(10_000) == 8.5
    assert renewed_after_s(0) is None
