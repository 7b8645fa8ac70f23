"""From settings to listeners: users, mechanisms, limits, and the one line for what cannot be used."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.security_images import ScramCredential, ScramImage
from barnabas.net.listener_security import ListenerSecurity
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import controllers_security, securities
from barnabas.security.client_login import client_mechanism
from barnabas.security.server_login import ServerLogin, TokenRejected

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
GIVEN = {
    "listeners": "OUT://:9093",
    "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.out.plain.sasl.jaas.config": f'{PLAIN} required user_alice="alice-secret";',
}


def stores() -> RenewedStores:
    loop: Any = None
    return RenewedStores(loop, 1)


def made(image: MetadataImage | None = None, **more: str) -> ListenerSecurity:
    config = BrokerConfig.from_properties({**GIVEN, **{name.replace("__", "."): text for name, text in more.items()}})
    return securities(config, config.listeners, lambda: image or MetadataImage(), lambda: 1_000, stores())["OUT"]


def logged_in(security: ListenerSecurity, mechanism: str, user: str, password: str) -> ServerLogin:
    assert security.login is not None
    login = security.login()
    assert login.handshake(mechanism, 1)
    module = PLAIN if mechanism == "PLAIN" else "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {"sasl.jaas.config": f'{module} required username="{user}" password="{password}";'}
    client = client_mechanism(settings, mechanism)("localhost")
    token: bytes | None = client.begin()
    while token is not None:
        token = client.respond(login.respond(token))
    return login


def test_users_of_plain() -> None:
    assert str(logged_in(made(), "PLAIN", "alice", "alice-secret").principal) == "User:alice"
    with pytest.raises(TokenRejected):
        logged_in(made(), "PLAIN", "alice", "wrong")


def test_users_of_scram_are_in_the_metadata() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b"salt", 4096)
    client_key, server_key = _hmac(salted, b"Client Key"), _hmac(salted, b"Server Key")
    stored = ScramCredential(b"salt", hashlib.sha256(client_key).digest(), server_key, 4096)
    image = MetadataImage(scram=ScramImage({("carol", 1): stored}))
    assert str(logged_in(made(image), "SCRAM-SHA-256", "carol", "pencil").principal) == "User:carol"
    for user, password in (("carol", "pen"), ("dave", "pencil")):
        with pytest.raises(TokenRejected, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
            logged_in(made(image), "SCRAM-SHA-256", user, password)


def _hmac(key: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(key, data, "sha256")


def test_limits() -> None:
    security = made(
        sasl__server__max__receive__size="2000",
        connection__failed__authentication__delay__ms="7",
        listener__name__out__plain__connections__max__reauth__ms="500",
    )
    assert (security.max_receive_bytes, security.failure_delay_ms) == (2000, 7)
    assert logged_in(security, "PLAIN", "alice", "alice-secret").session_ms() == 500


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"listener__name__out__plain__sasl__jaas__config": "hunter2"},
            "listener.name.out.plain.sasl.jaas.config",
        ),
        (
            {"listener__name__out__plain__sasl__jaas__config": "org.example.Other required user_a=hunter2;"},
            "listener.name.out.plain.sasl.jaas.config names another login module",
        ),
        (
            {"sasl__enabled__mechanisms": "OAUTHBEARER"},
            "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url is not set",
        ),
        ({"sasl__server__max__receive__size": "0"}, "Invalid value 0 for configuration sasl.server.max.receive.size"),
        (
            {"listener__security__protocol__map": "OUT:SASL_SSL"},
            "listener OUT: ssl.keystore.location: is missing",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_without_secrets(more: dict[str, str], line: str) -> None:
    with pytest.raises(CannotStart) as caught:
        made(**more)
    assert str(caught.value).startswith(line)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plain_without_users_stops_the_start() -> None:
    given: Any = {name: text for name, text in GIVEN.items() if "jaas" not in name}
    config = BrokerConfig.from_properties(given)
    with pytest.raises(
        CannotStart, match=r"listener\.name\.out\.plain\.sasl\.jaas\.config is not set: it has the users"
    ):
        securities(config, config.listeners, MetadataImage, lambda: 1_000, stores())


def test_a_node_alone_dials_controllers_in_plain_text() -> None:
    assert controllers_security(BrokerConfig.from_properties({}), stores()) is None
