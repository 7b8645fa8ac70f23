"""Where a client's token comes from."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from barnabas.security.client_login import client_mechanism
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_unsecured import unsecured_token
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.token_source import TokenRequest

JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};"
URL = "sasl.oauthbearer.token.endpoint.url"
SERVER = {
    URL: "https://login.example/token", "sasl.jaas.config": JAAS.format('extension_logicalCluster="lkc-1"'),
    "sasl.oauthbearer.client.credentials.client.id": "id:1", "sasl.oauthbearer.client.credentials.client.secret": "hidden",
    "sasl.oauthbearer.scope": "read write",
}  # fmt: skip


class TokenServer:
    """A token server that gives out a token of a minute, and a clock."""

    def __init__(self) -> None:
        self.requests: list[TokenRequest] = []
        self.now_ms = 1_700_000_000_000
        self.body: bytes | None = None

    def fetch(self, request: TokenRequest) -> bytes:
        self.requests.append(request)
        if self.body is not None:
            return self.body
        options = {"unsecuredLoginStringClaim_sub": f"u{len(self.requests)}", "unsecuredLoginLifetimeSeconds": "60"}
        return json.dumps({"access_token": unsecured_token(options, self.now_ms, ""), "expires_in": 60}).encode()

    def first_token(self, settings: dict[str, str]) -> bytes:
        return client_mechanism(settings, "OAUTHBEARER", fetch=self.fetch, now_ms=lambda: self.now_ms)("broker").begin()


def test_a_token_in_a_file_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "my token"
    file.write_text("a.b.c\n")
    new = client_mechanism({URL: file.as_uri(), "sasl.jaas.config": JAAS.format("")}, "OAUTHBEARER")
    assert new("broker").begin() == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    file.write_text("d.e.f")
    assert new("broker").begin() == b"n,,\x01auth=Bearer d.e.f\x01\x01"
    file.write_text("")
    with pytest.raises(LoginFailed, match="has no token"):
        new("broker").begin()
    file.unlink()
    with pytest.raises(LoginFailed, match="cannot be read"):
        new("broker").begin()


def test_client_credentials() -> None:
    server = TokenServer()
    login = server.first_token(SERVER)
    assert login.startswith(b"n,,\x01auth=Bearer ey")
    assert login.endswith(b"\x01logicalCluster=lkc-1\x01\x01")
    (request,) = server.requests
    assert request.url == "https://login.example/token"
    assert request.headers["Authorization"] == "Basic " + base64.b64encode(b"id:1:hidden").decode()
    assert request.body == b"grant_type=client_credentials&scope=read+write"
    assert repr(request) == "<TokenRequest https://login.example/token>"


def test_the_options_of_the_login_module_name_the_client_too() -> None:
    server = TokenServer()
    text = JAAS.format('clientId="a b" clientSecret="s"')
    server.first_token({URL: SERVER[URL], "sasl.jaas.config": text, "sasl.oauthbearer.header.urlencode": "true"})
    assert server.requests[0].headers["Authorization"] == "Basic " + base64.b64encode(b"a+b:s").decode()


def test_a_fetched_token_is_used_until_most_of_its_life_has_passed() -> None:
    server = TokenServer()
    new = client_mechanism(SERVER, "OAUTHBEARER", fetch=server.fetch, now_ms=lambda: server.now_ms)
    first = new("a").begin()
    server.now_ms += 47_000
    assert new("b").begin() == first
    assert len(server.requests) == 1
    server.now_ms += 2_000
    assert new("a").begin() != first
    assert len(server.requests) == 2


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"access_token": 7}', b'{"error": "hidden"}'])
def test_an_answer_without_a_token(body: bytes) -> None:
    server = TokenServer()
    server.body = body
    with pytest.raises(LoginFailed, match="answers without an access_token") as failed:
        server.first_token(SERVER)
    assert "hidden" not in str(failed.value)


def test_a_server_that_is_away() -> None:
    def fetch(request: TokenRequest) -> bytes:
        raise ConnectionRefusedError("connection refused")

    with pytest.raises(LoginFailed, match="does not answer: connection refused"):
        client_mechanism(SERVER, "OAUTHBEARER", fetch=fetch)("broker").begin()


def test_an_unsecured_token() -> None:
    login = TokenServer().first_token({"sasl.jaas.config": JAAS.format('unsecuredLoginStringClaim_sub="alice"')})
    assert login.startswith(b"n,,\x01auth=Bearer eyJhbGciOiAibm9uZSJ9.")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({URL: "file:///nowhere/token"}, f"{URL}: there is no file /nowhere/token"),
        ({URL: "ftp://hidden"}, f"{URL}: expected a URL"),
        ({URL: "https://"}, f"{URL}: expected a URL"),
        (
            {"sasl.oauthbearer.client.credentials.client.secret": ""},
            "sasl.oauthbearer.client.credentials.client.secret: is missing",
        ),
        ({URL: ""}, "sasl.jaas.config: has no unsecuredLoginStringClaim_sub"),
        ({"sasl.jaas.config": JAAS.format('extension_auth="hidden"')}, "sasl.jaas.config: the extension 'auth'"),
        ({"sasl.jaas.config": "com.acme.Login required;"}, "sasl.jaas.config: names another login module"),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, str], line: str) -> None:
    with pytest.raises(SecuritySettingError) as refused:
        TokenServer().first_token({**SERVER, **changes})
    assert str(refused.value).startswith(line)
    assert "hidden" not in str(refused.value)


def test_without_a_way_to_fetch_only_files_are_read() -> None:
    with pytest.raises(SecuritySettingError, match="from files only"):
        client_mechanism(SERVER, "OAUTHBEARER")
