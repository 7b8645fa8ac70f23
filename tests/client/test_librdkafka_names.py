"""Files that were written for clients of librdkafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.client_settings import client_settings
from barnabas.client.librdkafka_names import java_settings
from barnabas.security.client_login import jaas_entry
from barnabas.security.setting_error import SecuritySettingError

SASL = {"security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-256"}


def java(given: dict[str, str]) -> dict[str, str]:
    """Return what is added or changed."""
    return dict(java_settings(given).items() - given.items())


@pytest.mark.parametrize("password", ["secret", 'a"b\\c', "tab\tline\nend\r", "é;//*", "'"])
@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", "PlainLoginModule"), ("SCRAM-SHA-512", "ScramLoginModule")]
)
def test_a_user_is_that_of_javas_line(password: str, mechanism: str, module: str) -> None:
    found = java({**SASL, "sasl.mechanisms": mechanism, "sasl.username": "al ice", "sasl.password": password})
    assert found["sasl.mechanism"] == mechanism
    entry = jaas_entry(found)
    assert entry.module.endswith(f".{module}")
    assert entry.options == {"username": "al ice", "password": password}


def test_certificates_and_keys(tmp_path: Path) -> None:
    for name in ("ca", "key", "chain"):
        (tmp_path / name).write_text(f"the {name}")
    files = {
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.certificate.location": str(tmp_path / "chain"),
    }
    texts = {"ssl.ca.pem": "the ca", "ssl.key.pem": "the key", "ssl.certificate.pem": "the chain"}
    for given in (files, texts):
        assert java({"security.protocol": "SSL", "ssl.key.password": "x", **given}) == {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "the ca",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "the key",
            "ssl.keystore.certificate.chain": "the chain",
        }


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"security.protocol": "SSL", "ssl.ca.location": "probe", "enable.ssl.certificate.verification": "true"}, {}),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"},
            {"ssl.endpoint.identification.algorithm": ""},
        ),
        ({"security.protocol": "SSL", "ssl.ca.location": "/x", "ssl.truststore.location": "/y"}, {}),
        ({"security.protocol": "SSL", "ssl.key.location": "/x", "ssl.keystore.location": "/y.p12"}, {}),
        ({**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.jaas.config": "x"}, {}),
        ({"security.protocol": "PLAINTEXT", "ssl.ca.location": "/none", "ssl.crl.location": "/x"}, {}),
        ({"ssl.ca.location": "/none", "sasl.username": "a"}, {}),
    ],
)
def test_javas_own_names_come_first_and_plain_text_needs_none(given: dict[str, str], added: dict[str, str]) -> None:
    assert java(given) == added


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"enable.ssl.certificate.verification": "false"},
            "certificates are verified always: name the authority in ssl.trust",
        ),
        (
            {"ssl.crl.location": "/x"},
            "ssl.crl.location: is a setting of librdkafka's that barnabas does not have: there are no",
        ),
        ({"ssl.ca.location": "/no/such"}, "ssl.ca.location: cannot read /no/such: No such file"),
        ({"ssl.ca.location": "/"}, "ssl.ca.location: / is a directory: name one file"),
        ({"sasl.username": "alice"}, "sasl.password: is missing; or use sasl.jaas.config"),
        ({"sasl.password": "hunter2"}, "sasl.username: is missing"),
        ({"sasl.oauthbearer.method": "oidc"}, "use sasl.jaas.config with the options clientId, clientSecret and scope"),
    ],
)
def test_what_has_no_counterpart_is_an_error(given: dict[str, str], why: str) -> None:
    with pytest.raises(SecuritySettingError) as caught:
        java_settings({**SASL, **given})
    assert why in str(caught.value)
    assert "hunter2" not in str(caught.value)


TRANSLATED = {
    "enable.ssl.certificate.verification", "sasl.mechanisms", "sasl.password", "sasl.username", "ssl.ca.location", "ssl.ca.pem",
    "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem",
}  # fmt: skip


def test_no_name_of_librdkafkas_alone_is_dropped_without_a_word() -> None:
    words = ("ssl.", "sasl.", "enable.ssl.", "enable.sasl.")
    names = {
        name for name, clients in client_settings().items() if clients == ["librdkafka"] and name.startswith(words)
    }
    for name in names - TRANSLATED:
        with pytest.raises(SecuritySettingError, match=f"^{name}: is a setting of librdkafka's"):
            java_settings({**SASL, name: "x"})
