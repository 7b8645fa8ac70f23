"""From Java's settings to the client's side of a login."""

from __future__ import annotations

import pytest

from barnabas.security.client_login import client_mechanism
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.setting_error import SecuritySettingError

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def jaas(text: str, module: str = PLAIN_MODULE) -> dict[str, str]:
    return {"sasl.jaas.config": f"{module} required {text};"}


@pytest.mark.parametrize("module", [PLAIN_MODULE, SCRAM_MODULE, f"kafkashaded.{PLAIN_MODULE}"])
def test_plain(module: str) -> None:
    machine = client_mechanism(jaas('username="alice" password="a secret"', module), "PLAIN")("broker-1")
    assert machine.name == "PLAIN"
    server = PlainServer({"alice": "a secret"}.get)
    assert machine.respond(server.respond(machine.begin())) is None
    assert server.is_finished


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(mechanism: str) -> None:
    new = client_mechanism(jaas('username="al,ice" password="a secret"', SCRAM_MODULE), mechanism)
    machine = new("broker-1")
    assert machine.name == mechanism
    assert machine.begin().startswith(b"n,,n=al=2Cice,r=")
    assert new("broker-1").begin() != machine.begin()


def test_a_delegation_token() -> None:
    text = 'username="id" password="hmac" tokenauth="true"'
    machine = client_mechanism(jaas(text, SCRAM_MODULE), "SCRAM-SHA-256")("broker-1")
    assert machine.begin().endswith(b",tokenauth=true")


@pytest.mark.parametrize(
    ("settings", "mechanism", "line"),
    [
        ({}, "PLAIN", "sasl.jaas.config: is missing"),
        (jaas('username="alice"'), "PLAIN", "sasl.jaas.config: has no password"),
        (jaas('password="hidden"'), "PLAIN", "sasl.jaas.config: has no username"),
        (jaas('username="alice" password=""'), "SCRAM-SHA-256", "sasl.jaas.config: has no password"),
        (jaas('password="hidden"', "com.acme.Login"), "PLAIN", "sasl.jaas.config: names a login module without"),
        ({}, "GSSAPI", "sasl.mechanism: GSSAPI (Kerberos)"),
        ({}, "hidden", "sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], mechanism: str, line: str) -> None:
    with pytest.raises(SecuritySettingError) as refused:
        client_mechanism(settings, mechanism)
    assert str(refused.value).startswith(line)
    assert "hidden" not in str(refused.value)
