"""OAUTHBEARER on a listener: from settings and a key set to principals; which tokens are refused, and which settings stop the start."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from joserfc.jwk import ECKey

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import securities
from barnabas.repeated_lines import RepeatedLines
from barnabas.security.sasl.oauth_messages import KEPT_SHORT, bearer_login
from barnabas.security.server_login import ServerLogin, TokenRejected
from tests.token_server import AUDIENCE, ISSUER, TokenServer

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
OAUTH, OUT = "sasl.oauthbearer.", "listener.name.out.oauthbearer."
GIVEN = {
    "listeners": "OUT://:9093",
    "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{OUT}sasl.jaas.config": f"{MODULE} required;",
    f"{OUT}sasl.server.callback.handler.class": HANDLER,
    f"{OAUTH}expected.audience": f"{AUDIENCE},other",
    f"{OAUTH}expected.issuer": ISSUER,
}
INVALID = b'{"status":"invalid_token"}'


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    with TokenServer() as made:
        yield made


@pytest.fixture
def keys(server: TokenServer, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "keys.json"
    file.write_bytes(server.document())
    return {f"{OAUTH}jwks.endpoint.url": file.as_uri()}


def now_ms() -> int:
    return int(time.time() * 1000)


def login(given: dict[str, str]) -> ServerLogin:
    """Return a login on a listener that has read its keys."""
    config = BrokerConfig.from_properties(given)
    security = securities(config, config.listeners, MetadataImage, now_ms, RenewedStores(cast("Any", None), 1))["OUT"]

    async def read() -> None:
        if security.keys is not None:
            loop = asyncio.get_running_loop()
            await security.keys.begin(loop, RepeatedLines(loop))
            security.keys.close()

    asyncio.run(read())
    assert security.login is not None
    made = security.login()
    assert made.handshake("OAUTHBEARER", 1)
    return made


def stopped(**more: str) -> str:
    config = BrokerConfig.from_properties({**GIVEN, **more})
    with pytest.raises(CannotStart) as caught:
        securities(config, config.listeners, MetadataImage, now_ms, RenewedStores(cast("Any", None), 1))
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


def test_a_signed_token_is_a_principal(server: TokenServer, keys: dict[str, str]) -> None:
    made = login({**GIVEN, **keys})
    assert made.respond(bearer_login(server.token("alice"), {})) == b""
    assert str(made.principal) == "User:alice"
    # The session ends with the token, whose life has a part of a second.
    assert 590_000 < made.session_ms() <= 600_000


def test_the_shorter_life_ends_the_session(server: TokenServer, keys: dict[str, str]) -> None:
    for longest, least, most in (("5000", 4000, 5000), ("900000", 590_000, 600_000)):
        made = login({**GIVEN, **keys, f"{OUT}connections.max.reauth.ms": longest})
        made.respond(bearer_login(server.token("alice"), {}))
        assert least < made.session_ms() <= most


def test_refused_tokens_have_one_text(server: TokenServer, keys: dict[str, str]) -> None:
    stranger = ECKey.generate_key("P-256", {"kid": server.key.kid})
    unsecured = server.token("alice").split(".")[1]
    tokens = [
        server.token("alice", exp=int(time.time()) - 60),
        server.token("alice", iss="https://elsewhere.example.org"),
        server.token("alice", aud="another"),
        server.token("alice", key=stranger),
        server.token("alice", key=ECKey.generate_key("P-256", {"kid": "unknown"})),
        f"eyJhbGciOiJub25lIn0.{unsecured}.",
        server.token(" "),
    ]
    for token in tokens:
        made = login({**GIVEN, **keys})
        assert made.respond(bearer_login(token, {})) == INVALID
        with pytest.raises(TokenRejected) as caught:
            made.respond(KEPT_SHORT)
        assert str(caught.value).encode() == INVALID
        assert made.principal is None
        assert token not in made.why_failed


def test_claims_may_have_other_names(server: TokenServer, keys: dict[str, str]) -> None:
    names = {f"listener.name.out.{OAUTH}sub.claim.name": "user", f"{OUT}{OAUTH}scope.claim.name": "scp"}
    made = login({**GIVEN, **keys, **names})
    assert made.respond(bearer_login(server.token("alice", user="bob", scp=["a"]), {})) == b""
    assert str(made.principal) == "User:bob"


def test_a_mechanisms_setting_comes_before_a_listeners(server: TokenServer, keys: dict[str, str]) -> None:
    more = {f"{OUT}{OAUTH}expected.audience": "mine", f"listener.name.out.{OAUTH}expected.audience": "theirs"}
    for audience, answer in (("mine", b""), ("theirs", INVALID), (AUDIENCE, INVALID)):
        made = login({**GIVEN, **keys, **more})
        assert made.respond(bearer_login(server.token("alice", aud=audience), {})) == answer


def test_unsecured_tokens_need_the_word_of_the_operator(server: TokenServer, keys: dict[str, str]) -> None:
    assert stopped() == (
        f"{OUT}{OAUTH}jwks.endpoint.url is not set: it has the keys of OAUTHBEARER's tokens (file:, https: or http:). "
        "Tokens without a signature, which anybody can make, need barnabas.insecure=true (--insecure)"
    )
    plain = server.token("alice").split(".")[1]
    insecure = {name: text for name, text in GIVEN.items() if "expected" not in name and "handler" not in name}
    made = login({**insecure, "barnabas.insecure": "true"})
    assert made.respond(bearer_login(f"eyJhbGciOiJub25lIn0.{plain}.", {})) == b""
    assert str(made.principal) == "User:alice"
    # Where there are keys, it changes nothing.
    made = login({**GIVEN, **keys, "barnabas.insecure": "true"})
    assert made.respond(bearer_login(f"eyJhbGciOiJub25lIn0.{plain}.", {})) == INVALID


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({f"{OUT}{OAUTH}jwks.endpoint.url": "ftp://h/k"}, f"{OUT}{OAUTH}jwks.endpoint.url: expected a URL that begins with"),
        ({f"{OAUTH}jwks.endpoint.refresh.ms": "0"}, f"{OUT}{OAUTH}jwks.endpoint.refresh.ms: 0 is not a number of milliseconds"),
        ({f"{OAUTH}expected.audience": ""}, f"{OUT}{OAUTH}expected.audience: must be set, so that tokens for others are"),
        ({f"{OAUTH}expected.issuer": ""}, f"{OUT}{OAUTH}expected.issuer: must be set, so that tokens for others are refused"),
        ({f"{OUT}sasl.jaas.config": "org.example.Other required a=hunter2;"}, f"{OUT}sasl.jaas.config names another login module"),
        ({f"{OUT}sasl.server.callback.handler.class": "org.example.H"}, f"{OUT}sasl.server.callback.handler.class: a class cannot"),
        (
            {
                f"{OUT}{OAUTH}jwks.endpoint.url": "https://h/k",
                f"{OUT}sasl.jaas.config": f'{MODULE} required ssl.truststore.type=PEM ssl.truststore.location="/no/such";',
            },
            f"{OUT}sasl.jaas.config: ssl.truststore.location: ",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_stops_the_start(keys: dict[str, str], more: dict[str, str], line: str) -> None:
    assert stopped(**{**keys, **more}).startswith(line)


def test_a_document_without_keys_is_not_a_key_set(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    for text in ("", json.dumps({"keys": []})):
        file.write_text(text)
        with pytest.raises(ValueError, match=r"^the document (is not a JSON document|has no RSA or EC key)"):
            login({**GIVEN, f"{OAUTH}jwks.endpoint.url": file.as_uri()})
