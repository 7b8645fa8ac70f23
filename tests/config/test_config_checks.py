"""What a node cannot honour stops its start, by name."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError, Listener


def refused(**properties: str) -> str:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_settings_that_ask_for_protection_are_named_in_one_line() -> None:
    given = {
        "ssl.client.auth": "required",
        "authorizer.class.name": "org.example.Authorizer",
        "super.users": "User:admin",
        "ssl.keystore.password": "hunter2",
        "num.partitions": "3",
    }
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert str(caught.value) == (
        "authorizer.class.name=org.example.Authorizer, ssl.client.auth=required, ssl.keystore.password, super.users=User:admin: "
        "barnabas has no TLS, no logins and no ACLs yet: everybody who reaches its port may read and write. "
        "Remove these settings to start without protection"
    )
    # A directory may be formatted for another broker.
    assert BrokerConfig.from_properties(given, served=False).num_partitions == 3


@pytest.mark.parametrize("embedded", [False, True])
def test_a_listener_with_tls_or_a_login_stops_the_start(embedded: bool) -> None:
    given = {
        "listeners": "PLAINTEXT://:9092,EXTERNAL://:9093,SSL://:9094",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:sasl_ssl,SSL:SSL",
    }
    with pytest.raises(
        ConfigError,
        match=r"^listener EXTERNAL with SASL_SSL \(listener\.security\.protocol\.map\), "
        r"listener SSL with SSL \(listener\.security\.protocol\.map\): barnabas has no TLS",
    ):
        BrokerConfig.from_properties(given, embedded=embedded)


CONTROLLERS = {
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@h:9093,2@i:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL",
}


@pytest.mark.parametrize(
    "roles",
    [
        {"process.roles": "broker,controller", "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
        {"process.roles": "controller", "listeners": "CONTROLLER://:9093"},
        # It would send the controllers its requests in clear.
        {"process.roles": "broker", "listeners": "PLAINTEXT://:9092", "node.id": "3"},
    ],
    ids=lambda roles: roles["process.roles"],
)
def test_a_controllers_listener_with_tls_or_a_login_stops_the_start_too(roles: dict[str, str]) -> None:
    with pytest.raises(
        ConfigError,
        match=r"^listener CONTROLLER with SASL_SSL \(listener\.security\.protocol\.map\): barnabas has no TLS",
    ):
        BrokerConfig.from_properties({**CONTROLLERS, **roles})


def test_a_listener_whose_own_name_asks_for_protection() -> None:
    with pytest.raises(ConfigError, match=r"^listener SSL with SSL \(listeners\): barnabas has no TLS"):
        BrokerConfig.from_properties({"listeners": "SSL://:9094"})


def test_the_map_may_have_more_listeners_than_a_node() -> None:
    made = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://:9092", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL,X:SSL"}
    )
    assert made.is_alone


def test_an_assignor_must_be_known() -> None:
    assert "one or more of uniform, range" in refused(group_consumer_assignors="sticky")


def test_an_advertised_listener_must_exist() -> None:
    given = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "advertised.listeners": "SSL://a:9092"}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert str(caught.value) == (
        "advertised.listeners names SSL, which is not one of the listeners: CONTROLLER, PLAINTEXT"
    )
    given["advertised.listeners"] = "PLAINTEXT://a:9092,CONTROLLER://a:9093"
    assert BrokerConfig.from_properties(given).advertised_listeners is not None


def test_a_node_ignores_the_advertised_addresses_of_a_role_that_it_has_not() -> None:
    quorum = {
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "c:9093",
    }
    both = {"advertised.listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093"}
    broker = {"process.roles": "broker", "listeners": "PLAINTEXT://:9092", **quorum, **both}
    assert BrokerConfig.from_properties(broker).advertised_listeners == (Listener("PLAINTEXT", "h", 9092),)
    controller = {"process.roles": "controller", "listeners": "CONTROLLER://:9093", **quorum, **both}
    made = BrokerConfig.from_properties(controller)
    assert made.advertised_controller_listeners == (Listener("CONTROLLER", "h", 9093),)
