"""The settings of nodes and clients of a development cluster: what a node accepts, and what its clients send."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.security.client_login import client_mechanism
from barnabas.security.dev_settings import ADMIN, CLIENT_MECHANISMS, SECURED_PROTOCOLS, client_login, node_settings
from barnabas.security.jaas import parse_jaas

PASSWORD = 'say "yes" \\ no; \n'
STORES = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/key.pem"}


def settings(protocol: str, *, is_alone: bool, asks_certificates: bool = True) -> dict[str, str]:
    return node_settings(
        protocol,
        stores=STORES if protocol.endswith("SSL") else {},
        users={ADMIN: "admin-secret", "alice": PASSWORD},
        nodes=["node-1", "node-2"],
        is_alone=is_alone,
        asks_certificates=asks_certificates,
        has_authorizer=True,
    )


@pytest.mark.parametrize("protocol", SECURED_PROTOCOLS)
def test_a_node_accepts_them(protocol: str) -> None:
    """Every setting protects something, or the node would refuse it."""
    listeners = {"listeners": f"{protocol}://127.0.0.1:9092", "log.dirs": "/data"}
    alone = BrokerConfig.from_properties({**listeners, **settings(protocol, is_alone=True)})
    assert alone.unknown == alone.without_effect == ()
    assert alone.listeners[0].security_protocol == protocol
    member = BrokerConfig.from_properties(
        {
            **listeners,
            **settings(protocol, is_alone=False),
            "listeners": f"{protocol}://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093,2@127.0.0.1:9094",
        }
    )
    assert member.inter_broker_listener.name == protocol
    assert member.controller_listeners[0].security_protocol == protocol


def test_nodes_are_super_users() -> None:
    assert settings("SASL_SSL", is_alone=False)["super.users"] == "User:admin"
    assert settings("SSL", is_alone=False)["super.users"] == "User:admin;User:node-1;User:node-2"


def test_certificates_are_asked_for_where_they_say_who_it_is() -> None:
    found = settings("SSL", is_alone=False, asks_certificates=False)
    assert "listener.name.ssl.ssl.client.auth" not in found
    assert found["listener.name.controller.ssl.client.auth"] == "required"
    assert settings("SSL", is_alone=True)["listener.name.ssl.ssl.client.auth"] == "required"


@pytest.mark.parametrize("mechanism", CLIENT_MECHANISMS)
def test_a_password_of_any_characters_arrives(mechanism: str) -> None:
    login = client_login(mechanism, "alice", PASSWORD)
    client_mechanism(login, mechanism)("localhost")
    assert parse_jaas(login["sasl.jaas.config"]).options == {"username": "alice", "password": PASSWORD}
    of_node = settings("SASL_SSL", is_alone=True)["listener.name.sasl_ssl.plain.sasl.jaas.config"]
    assert parse_jaas(of_node).options["user_alice"] == PASSWORD
