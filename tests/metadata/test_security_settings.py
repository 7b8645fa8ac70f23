"""Which settings ask for protection, value by value, and which values may be shown."""

from __future__ import annotations

import pytest

from barnabas.config.config_table import config_schema
from barnabas.config.listener_security import HONOURED
from barnabas.config.token_settings import TOKEN_SETTINGS
from barnabas.metadata.config_schema import ConfigError, ConfigResourceType, ConfigType
from barnabas.metadata.security_settings import is_secret, shown, unserved

KEYS = config_schema().of(ConfigResourceType.BROKER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.client.auth", "required"),
        ("ssl.client.auth", "requested"),
        ("ssl.keystore.location", "/etc/kafka/kafka.jks"),
        ("ssl.keystore.password", "x"),
        ("ssl.no.such.thing", "x"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
        ("sasl.enabled.mechanisms", "GSSAPI,PLAIN"),
        ("sasl.jaas.config", "org.example.Module required;"),
        ("security.inter.broker.protocol", "SASL_SSL"),
        ("security.protocol", "SSL"),
        ("security.providers", "org.example.Provider"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:admin"),
        ("allow.everyone.if.no.acl.found", "false"),
        ("principal.builder.class", "org.example.Builder"),
        ("connections.max.reauth.ms", "3600000"),
        ("password.encoder.secret", "x"),
        ("delegation.token.secret.key", "x"),
        ("create.topic.policy.class.name", "org.example.Policy"),
        ("listener.name.external.ssl.client.auth", "required"),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", "x"),
        ("listener.name.a.b.ssl.keystore.location", "x"),
        ("listener.name.ssl.ssl.keystore.location", "x"),
        ("listener.name.external.connections.max.reauth.ms", "1"),
    ],
)
def test_a_setting_that_asks_for_protection(name: str, value: str) -> None:
    assert unserved(name, value, KEYS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.client.auth", "none"),
        ("ssl.endpoint.identification.algorithm", ""),
        ("ssl.enabled.protocols", "TLSv1.3, TLSv1.2"),
        ("sasl.enabled.mechanisms", "GSSAPI"),
        ("sasl.login.refresh.window.factor", "0.80"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("security.protocol", "PLAINTEXT"),
        ("authorizer.class.name", ""),
        ("super.users", ""),
        ("allow.everyone.if.no.acl.found", "TRUE"),
        ("listener.name.external.ssl.client.auth", "none"),
        ("listener.name.ssl.max.connections", "5"),
        ("listener.security.protocol.map", "SSL:SSL,PLAINTEXT:PLAINTEXT"),
        ("num.partitions", "5"),
        ("zookeeper.connect", "localhost:2181"),
    ],
)
def test_a_value_that_means_no_protection(name: str, value: str) -> None:
    assert not unserved(name, value, KEYS)


def test_defaults_ask_for_nothing() -> None:
    assert [name for name, key in KEYS.items() if key.default and unserved(name, key.default, KEYS)] == []


def test_the_table_says_which_settings_stop_the_start() -> None:
    said = {name for name, key in KEYS.items() if "any value but the default stops the start" in key.documentation}
    asking = {name for name in KEYS if unserved(name, _other_than_default(name), KEYS)}
    assert said == asking - HONOURED - TOKEN_SETTINGS - {"authorizer.class.name"}


def _other_than_default(name: str) -> str:
    key = KEYS[name]
    if key.kind is ConfigType.BOOLEAN:
        return "false" if key.default == "true" else "true"
    for candidate in ("7", "1000", "2097152", *key.valid.strip("[]").split("[")[-1].split(", ")):
        try:
            if key.parse(candidate) != key.default_value():
                return candidate
        except ConfigError:
            continue
    return ""


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ssl.keystore.password", True),
        ("ssl.keystore.key", True),
        ("listener.name.external.ssl.key.password", True),
        ("listener.name.external.plain.sasl.jaas.config", True),
        ("listener.name.external.ssl.truststore.certificates", True),
        ("password.encoder.secret", True),
        ("my.plugin.api.token", True),
        ("num.partitions", False),
        ("ssl.keystore.location", False),
        ("log.segment.bytes", False),
    ],
)
def test_a_password_is_not_shown(name: str, secret: bool) -> None:
    assert is_secret(name, KEYS) is secret
    assert shown(name, "hunter2", KEYS) == (name if secret else f"{name}=hunter2")


def test_what_is_shown_cannot_drive_a_terminal() -> None:
    assert shown("a\x1b[31m", "b\nc", KEYS) == "a\\x1b[31m=b\\nc"
