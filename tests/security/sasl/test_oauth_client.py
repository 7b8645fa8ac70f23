"""The client's side of OAUTHBEARER."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_client import OAuthBearerClient


def test_a_token_that_the_server_takes() -> None:
    client = OAuthBearerClient(lambda: "a.b.c", {"traceId": "7"})
    assert client.begin() == b"n,,\x01auth=Bearer a.b.c\x01traceId=7\x01\x01"
    assert client.respond(b"") is None


def test_a_token_that_the_server_rejects() -> None:
    client = OAuthBearerClient(lambda: "a.b.c", {})
    client.begin()
    assert client.respond(b'{"status":"invalid_token"}\x1b[2J' + b"x" * 1000) == b"\x01"
    with pytest.raises(
        LoginFailed, match=r'the server rejects the token: \{"status":"invalid_token"\}\\x1b\[2J'
    ) as failed:
        client.respond(b"")
    assert len(str(failed.value)) < 400


def test_the_repr_has_no_token() -> None:
    assert repr(OAuthBearerClient(lambda: "a.b.c", {})) == "<OAuthBearerClient>"
