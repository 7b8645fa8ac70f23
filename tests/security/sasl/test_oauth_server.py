"""The server's side of OAUTHBEARER."""

from __future__ import annotations

import pytest

from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_client import OAuthBearerClient
from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken, OAuthBearerServer


def validate(token: str) -> BearerToken:
    if token != "right":
        raise InvalidToken("the token has expired")
    return BearerToken("alice", 1_800_000_000_000)


def test_a_login() -> None:
    server, client = OAuthBearerServer(validate), OAuthBearerClient(lambda: "right", {"any": "thing"})
    assert client.respond(server.respond(client.begin())) is None
    assert server.is_finished
    assert (server.principal, server.lifetime_ms) == (Principal("User", "alice"), 1_800_000_000_000)


def test_a_token_that_is_not_valid() -> None:
    """The client learns that, and not why; the operator reads why."""
    server, client = OAuthBearerServer(validate), OAuthBearerClient(lambda: "wrong", {})
    error = server.respond(client.begin())
    assert error == b'{"status":"invalid_token"}'
    last = client.respond(error)
    assert last is not None
    with pytest.raises(LoginFailed) as failed:
        server.respond(last)
    assert failed.value.text == '{"status":"invalid_token"}'
    assert failed.value.why == '{"status":"invalid_token"}: the token has expired'
    assert not server.is_finished
    assert server.lifetime_ms is None


def test_no_second_token_after_an_error() -> None:
    server = OAuthBearerServer(validate)
    server.respond(OAuthBearerClient(lambda: "wrong", {}).begin())
    with pytest.raises(LoginFailed):
        server.respond(OAuthBearerClient(lambda: "right", {}).begin())


def test_another_authorization_id() -> None:
    with pytest.raises(
        LoginFailed, match=r"authorization id \(bob\) that is different from the token's principal name \(alice\)"
    ):
        OAuthBearerServer(validate).respond(b"n,a=bob,\x01auth=Bearer right\x01\x01")


def test_a_message_outside_the_grammar() -> None:
    with pytest.raises(LoginFailed) as failed:
        OAuthBearerServer(validate, "re-authentication").respond(b"\x01")
    assert failed.value.text.startswith("Authentication failed during re-authentication due to invalid credentials")
    assert repr(OAuthBearerServer(validate)) == "<OAuthBearerServer>"
