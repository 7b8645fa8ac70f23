"""How a client secures its connections, from settings."""

from __future__ import annotations

import pickle
import ssl

import pytest

from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.setting_error import SecuritySettingError

LOGIN = {
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="s3cret";',
}


def made(protocol: str, **others: str) -> ClientSecurity:
    found = client_security({"security.protocol": protocol, "client.id": "not ours", **LOGIN, **others})
    assert found is not None
    return found


def test_plaintext_is_none_whatever_else_is_set() -> None:
    assert client_security({}) is None
    assert client_security({"security.protocol": "plaintext", "sasl.mechanism": "GSSAPI"}) is None


@pytest.mark.parametrize(
    ("protocol", "with_tls", "with_login"),
    [("SSL", True, False), ("SASL_PLAINTEXT", False, True), ("sasl_ssl", True, True)],
)
def test_each_protocol_has_its_parts(protocol: str, with_tls: bool, with_login: bool) -> None:
    found = made(protocol)
    assert found.protocol == protocol.upper()
    assert isinstance(found.context, ssl.SSLContext) is with_tls
    assert (found.mechanism is not None) is with_login
    if found.mechanism is not None:
        assert found.mechanism("h").name == found.mechanism_name == "SCRAM-SHA-512"
        assert found.mechanism("h") is not found.mechanism("h")


def test_it_is_pickled_by_its_settings_and_shows_no_secret() -> None:
    found = made("SASL_SSL")
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.mechanism is not None
    assert "client.id" not in dict(found.settings)
    assert repr(found) == "ClientSecurity(protocol='SASL_SSL', mechanism_name='SCRAM-SHA-512')"


def test_it_knows_whether_the_client_has_a_key() -> None:
    assert not made("SSL").has_key
    assert ClientSecurity("SSL", settings=(("ssl.keystore.key", "…"),)).has_key


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such/file"}, "ssl.truststore.location"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, str], name: str) -> None:
    with pytest.raises(SecuritySettingError) as raised:
        client_security(settings)
    assert raised.value.setting == name
