"""The security of listeners, and of what a node dials, from its settings."""

from __future__ import annotations

import pytest

from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.listener_security import (
    BEARER_HANDLER,
    CONTROLLER_MECHANISM,
    INTER_BROKER_MECHANISM,
    dialling_settings,
    enabled_mechanisms,
    listener_settings,
    mechanism_setting,
)

ALONE = {
    "listeners": "IN://:9092,OUT://:9093",
    "listener.security.protocol.map": "IN:PLAINTEXT,OUT:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN",
}
MEMBER = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@h:9093,2@i:9093",
    "listeners": "OUT://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map": "OUT:SASL_SSL,CONTROLLER:SASL_SSL",
    "inter.broker.listener.name": "OUT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
}


def made(given: dict[str, str], **more: str) -> BrokerConfig:
    return BrokerConfig.from_properties({**given, **{name.replace("__", "."): text for name, text in more.items()}})


def refused(given: dict[str, str], **more: str) -> str:
    with pytest.raises(ConfigError) as caught:
        made(given, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_listeners_own_setting_comes_first() -> None:
    properties = {
        "ssl.client.auth": "none",
        "ssl.protocol": "TLSv1.2",
        "listener.name.out.ssl.client.auth": "required",
        "listener.name.other.ssl.client.auth": "requested",
        "num.partitions": "3",
    }
    assert listener_settings(properties, "OUT") == {"ssl.client.auth": "required", "ssl.protocol": "TLSv1.2"}


def test_a_mechanisms_own_setting_comes_before() -> None:
    properties = {
        "connections.max.reauth.ms": "1",
        "listener.name.out.connections.max.reauth.ms": "2",
        "listener.name.out.plain.connections.max.reauth.ms": "3",
    }
    ask = "connections.max.reauth.ms"
    assert mechanism_setting(properties, "OUT", "PLAIN", ask) == "3"
    assert mechanism_setting(properties, "OUT", "SCRAM-SHA-256", ask) == "2"
    assert mechanism_setting(properties, "IN", "PLAIN", ask) == "1"
    assert mechanism_setting({}, "IN", "PLAIN", ask) is None


def test_the_mechanisms_of_a_listener() -> None:
    config = made(ALONE, listener__name__out__sasl__enabled__mechanisms="SCRAM-SHA-512, PLAIN")
    assert enabled_mechanisms(config, "OUT") == ("SCRAM-SHA-512", "PLAIN")


def test_gssapi_and_unknown_mechanisms_stop_the_start() -> None:
    assert "GSSAPI (Kafka's default), which barnabas does not have: name one of PLAIN, SCRAM" in refused(
        ALONE, sasl__enabled__mechanisms="GSSAPI"
    )
    without = {name: text for name, text in ALONE.items() if name != "sasl.enabled.mechanisms"}
    assert refused(without).startswith("sasl.enabled.mechanisms of listener OUT is GSSAPI")
    assert "is DIGEST-MD5, which is not one of" in refused(ALONE, sasl__enabled__mechanisms="DIGEST-MD5")
    assert "is empty, but listener OUT has SASL" in refused(ALONE, sasl__enabled__mechanisms="")


def test_what_brokers_use_must_be_enabled() -> None:
    assert refused(MEMBER, sasl__enabled__mechanisms="PLAIN") == (
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
        "inter-broker communication"
    )


def test_scram_among_voters_stops_the_start() -> None:
    assert refused(MEMBER, sasl__mechanism__controller__protocol="SCRAM-SHA-256") == (
        "sasl.mechanism.controller.protocol=SCRAM-SHA-256 cannot work among voters: the credentials are in the log that has "
        "no leader yet; use PLAIN, or certificates (SSL with ssl.client.auth=required)"
    )
    broker = {**MEMBER, "node.id": "3", "process.roles": "broker", "listeners": "OUT://:9092"}
    assert made(broker, sasl__mechanism__controller__protocol="SCRAM-SHA-256").is_broker


def test_controllers_need_an_explicit_protocol_beside_a_protected_listener() -> None:
    given = {**MEMBER, "listeners": "SASL_SSL://:9092,CONTROLLER://:9093", "inter.broker.listener.name": "SASL_SSL"}
    del given["listener.security.protocol.map"]
    assert "has no entry for the controllers' listener CONTROLLER" in refused(given)


def test_what_a_node_dials_with() -> None:
    config = made(
        MEMBER,
        ssl__truststore__location="/ca.pem",
        **{
            "listener__name__out__scram-sha-256__sasl__jaas__config": "scram",
            "listener__name__controller__plain__sasl__jaas__config": "plain",
            "listener__name__controller__ssl__truststore__location": "/other.pem",
        },
    )
    assert dialling_settings(config, "OUT", INTER_BROKER_MECHANISM) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "scram",
        "ssl.truststore.location": "/ca.pem",
    }
    assert dialling_settings(config, "CONTROLLER", CONTROLLER_MECHANISM) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "plain",
        "ssl.truststore.location": "/other.pem",
    }


def test_a_node_that_dials_needs_a_login() -> None:
    with pytest.raises(ConfigError, match=r"listener\.name\.out\.scram-sha-256\.sasl\.jaas\.config is not set"):
        dialling_settings(made(MEMBER), "OUT", INTER_BROKER_MECHANISM)


BEARERS = {**ALONE, "sasl.enabled.mechanisms": "OAUTHBEARER"}


def test_settings_of_tokens_need_a_listener_with_them() -> None:
    for prefix in ("", "listener.name.out.", "listener.name.out.oauthbearer."):
        name = f"{prefix}sasl.oauthbearer.expected.issuer"
        assert BrokerConfig.from_properties({**BEARERS, name: "https://i"}).properties[name] == "https://i"
        with pytest.raises(ConfigError, match=r"protects nothing, because no listener has the mechanism OAUTHBEARER"):
            BrokerConfig.from_properties({**ALONE, name: "https://i"})
    with pytest.raises(ConfigError, match="does not know how to honour"):
        BrokerConfig.from_properties(
            {**BEARERS, "listener.name.out.plain.sasl.oauthbearer.expected.issuer": "https://i"}
        )


def test_a_class_of_kafka_may_be_named_for_tokens_alone() -> None:
    own = "sasl.server.callback.handler.class"
    assert BrokerConfig.from_properties({**BEARERS, f"listener.name.out.oauthbearer.{own}": BEARER_HANDLER}).listeners
    for name in (own, f"listener.name.out.{own}", f"listener.name.out.plain.{own}"):
        with pytest.raises(ConfigError, match="does not know how to honour"):
            BrokerConfig.from_properties({**BEARERS, name: BEARER_HANDLER})


def test_a_node_dials_with_a_token_from_a_file() -> None:
    of_dialler = {"oauthbearer.sasl.jaas.config": "bearer", "sasl.oauthbearer.token.endpoint.url": "file:///token"}
    more = {f"listener.name.out.{name}": text for name, text in of_dialler.items()}
    given = {**MEMBER, "sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN", INTER_BROKER_MECHANISM: "OAUTHBEARER", **more}
    assert dialling_settings(BrokerConfig.from_properties(given), "OUT", INTER_BROKER_MECHANISM) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "bearer",
        "sasl.oauthbearer.token.endpoint.url": "file:///token",
    }
