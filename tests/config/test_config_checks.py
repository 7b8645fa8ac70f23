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


def test_settings_that_cannot_be_honoured_are_named_in_one_line() -> None:
    given = {
        "ssl.provider": "SunJSSE",
        "principal.builder.class": "org.example.Builder",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.nobody.ssl.client.auth": "required",
        "sasl.jaas.config": "org.example.Module required password=hunter2;",
        "num.partitions": "3",
    }
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(given)
    assert str(caught.value) == (
        "listener.name.nobody.ssl.client.auth=required, principal.builder.class=org.example.Builder, sasl.jaas.config, "
        "sasl.kerberos.service.name=kafka, ssl.provider=SunJSSE: barnabas does not know how to honour these settings. "
        "Remove these settings to start without the protection"
    )
    # A directory may be formatted for another broker.
    assert BrokerConfig.from_properties(given, served=False).num_partitions == 3


def test_a_setting_with_a_security_meaning_is_never_without_effect() -> None:
    assert refused(early_start_listeners="file").startswith("early.start.listeners contains listener file, but")
    assert refused(config_providers="file").startswith("config.providers names file, but config.providers.file.class")


def test_a_setting_that_protects_nothing_is_named() -> None:
    assert refused(ssl_client_auth="required") == (
        "ssl.client.auth=required: protects nothing, because no listener has SSL or SASL_SSL "
        "(listener.security.protocol.map). Remove it, or change a listener"
    )
    assert refused(sasl_enabled_mechanisms="PLAIN").startswith(
        "sasl.enabled.mechanisms=PLAIN: protects nothing, because no listener has SASL_SSL or SASL_PLAINTEXT"
    )
    assert "hunter2" not in refused(ssl_keystore_password="hunter2")


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
