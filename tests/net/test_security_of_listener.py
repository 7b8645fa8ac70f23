"""The users of a listener: a delegation token logs in as its owner, by each mechanism of SCRAM, as long as it is one of the cluster's."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.security_images import DelegationToken, DelegationTokensImage
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listener import security_of
from barnabas.security.delegation_tokens import TokenKey
from barnabas.security.principal import Principal
from barnabas.security.sasl.scram_client import ScramClient, ScramPassword
from barnabas.security.sasl.scram_keys import ScramMechanism
from barnabas.security.server_login import ServerLogin, TokenRejected

NOW = 1_700_000_000_000
KEY = TokenKey("a secret of the cluster")
TOKEN, HMAC = "JEXY6aqzQY-32P5TStzaFg", KEY.hmac("JEXY6aqzQY-32P5TStzaFg")
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "a secret of the cluster",
}
MECHANISMS = list(ScramMechanism)


class Cluster:
    """A listener, and the metadata that it reads."""

    def __init__(self, **settings: str) -> None:
        given = {**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}
        config = BrokerConfig.from_properties(given)
        self.now_ms = NOW
        self.image = MetadataImage()
        self.add(DelegationToken("User:alice", "User:bob", (), NOW - 10, NOW + 5_000, NOW + 1_000))
        loop = asyncio.new_event_loop()
        stores = RenewedStores(loop, 1)
        self.security = security_of(config, config.listeners[0], lambda: self.image, lambda: self.now_ms, stores)
        loop.close()

    def add(self, token: DelegationToken) -> None:
        self.image = self.image._replace(delegation_tokens=DelegationTokensImage({TOKEN: token}))

    def log_in(
        self,
        mechanism: ScramMechanism,
        hmac: bytes = HMAC,
        user: str = TOKEN,
        *,
        by_token: bool = True,
        login: Any = None,
    ) -> ServerLogin:
        assert self.security.login is not None
        login = login or self.security.login()
        assert login.handshake(mechanism.label, 1)
        password = base64.b64encode(hmac).decode()
        client = ScramClient(ScramPassword(mechanism, user, password, by_token=by_token), os.urandom)
        answer = client.respond(login.respond(client.begin()))
        assert answer is not None
        client.respond(login.respond(answer))
        return login  # type: ignore[no-any-return]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_token_logs_in_as_its_owner_until_it_expires(mechanism: ScramMechanism) -> None:
    cluster = Cluster()
    login = cluster.log_in(mechanism)
    assert login.principal == Principal("User", "alice")
    assert login.principal.by_token
    assert (login.expires_ms, login.session_ms()) == (NOW + 1_000, 1_000)
    assert login.objection(3) == ""
    cluster.now_ms = NOW + 1_000
    assert "has ended" in login.objection(3)


def test_a_renewed_token_logs_in_again() -> None:
    cluster = Cluster()
    login = cluster.log_in(MECHANISMS[0])
    cluster.now_ms = NOW + 900
    cluster.add(DelegationToken("User:alice", "User:bob", (), NOW - 10, NOW + 5_000, NOW + 4_000))
    again = cluster.log_in(MECHANISMS[0], login=login)
    assert again.expires_ms == NOW + 4_000


def test_the_sooner_end_counts() -> None:
    assert Cluster(connections_max_reauth_ms="400").log_in(MECHANISMS[0]).expires_ms == NOW + 400
    assert Cluster(connections_max_reauth_ms="4000").log_in(MECHANISMS[0]).expires_ms == NOW + 1_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "wrong",
    [
        {"hmac": TokenKey("another secret").hmac(TOKEN)},
        {"hmac": KEY.hmac("another id")},
        {"hmac": b""},
        {"user": "another id", "hmac": KEY.hmac("another id")},
        {"user": "alice"},
        {"by_token": False},
    ],
    ids=str,
)
def test_what_is_no_token_gets_one_text(mechanism: ScramMechanism, wrong: dict[str, Any]) -> None:
    words = f"^Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism.label}$"
    with pytest.raises(TokenRejected, match=words):
        Cluster().log_in(mechanism, **wrong)


@pytest.mark.parametrize("after_ms", [1_001, 86_400_000])
def test_an_expired_token_is_no_token(after_ms: int) -> None:
    cluster = Cluster()
    cluster.now_ms += after_ms
    with pytest.raises(TokenRejected):
        cluster.log_in(MECHANISMS[0])


def test_a_removed_token_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.image = MetadataImage()
    with pytest.raises(TokenRejected):
        cluster.log_in(MECHANISMS[0])


@pytest.mark.parametrize("secret", ["", "another secret"])
def test_a_node_with_another_secret_knows_none(secret: str) -> None:
    with pytest.raises(TokenRejected):
        Cluster(delegation_token_secret_key=secret).log_in(MECHANISMS[1])


def test_an_unknown_id_gets_the_answers_of_a_known_one() -> None:
    """Its salt is always the same, too, and so is the work."""
    cluster = Cluster()
    assert cluster.security.login is not None
    salts: dict[str, set[bytes]] = {TOKEN: set(), "another": set()}
    for token_id, found in salts.items():
        for _ in range(2):
            login = cluster.security.login()
            login.handshake("SCRAM-SHA-256", 1)
            client = ScramClient(ScramPassword(MECHANISMS[0], token_id, "x", by_token=True), os.urandom)
            answer = login.respond(client.begin())
            found.add(answer.split(b",s=")[1])
    assert [len(found) for found in salts.values()] == [1, 1]
    assert all(found.endswith(b",i=4096") for each in salts.values() for found in each)
