"""Java's settings for librdkafka: each result makes a client of the library, which refuses what it cannot use."""

from __future__ import annotations

import base64
import json

import pytest
from confluent_kafka import Consumer

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.security.client_security import client_security
from barnabas.security.setting_error import SecuritySettingError
from tests.security.certificates import authority, user

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SCRAM = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": f'{MODULE} required username="me" password="a\\"b";',
}


def translated(settings: dict[str, str]) -> dict[str, object]:
    found = librdkafka_security(client_security(settings))
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **found}).close()
    return found


def test_plaintext_is_nothing() -> None:
    assert librdkafka_security(None) == {}


def test_a_login() -> None:
    assert translated(SCRAM) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "me",
        "sasl.password": 'a"b',
    }


def test_stores_become_text() -> None:
    settings = {"security.protocol": "SSL", **authority().settings(), **user().settings()}
    found = translated(settings)
    assert found["ssl.ca.pem"] == authority().certificate
    assert found["ssl.endpoint.identification.algorithm"] == "https"
    assert str(found["ssl.key.pem"]).startswith("-----BEGIN PRIVATE KEY-----")
    assert str(found["ssl.certificate.pem"]).startswith("-----BEGIN CERTIFICATE-----")


def test_no_trust_store_is_the_systems_and_an_empty_algorithm_checks_no_name() -> None:
    found = translated({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
    assert found["ssl.ca.location"] == "probe"
    assert found["ssl.endpoint.identification.algorithm"] == "none"


def test_a_delegation_token_is_said_to_be_impossible() -> None:
    login = SCRAM["sasl.jaas.config"].replace(";", ' tokenauth="true";')
    with pytest.raises(SecuritySettingError, match="tokenauth"):
        librdkafka_security(client_security(SCRAM | {"sasl.jaas.config": login}))


def test_the_librarys_callback_returns_the_token_of_our_own_machine(tmp_path) -> None:  # type: ignore[no-untyped-def]
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "me", "exp": 4_000_000_000}).encode()).decode().rstrip("=")
    token = f"e30.{claims}.c2ln"
    (tmp_path / "token").write_text(token)
    found = translated(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
            ' extension_pool="p1";',
            "sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri(),
        }
    )
    callback = found["oauth_cb"]
    assert callable(callback)
    assert callback("") == (token, 4_000_000_000.0, "", {"pool": "p1"})
