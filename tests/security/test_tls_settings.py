"""Contexts from Java's settings, judged by handshakes, and each mistake in the settings."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_settings import client_context, server_context
from barnabas.words.requirements import install_command
from tests.hidden_packages import hide
from tests.security.certificates import authority, foreign_authority, node, user
from tests.security.tls_pair import TlsPair, read_all

NODE = node().settings()
TRUST = authority().settings()
PASSWORD = "marker-secret"


def connect(client: dict[str, str], server: dict[str, str], host: str = "localhost") -> TlsPair:
    pair = TlsPair(client_context(client), server_context(server), host)
    pair.exchange()
    return pair


def test_an_encrypted_key_is_opened_by_openssl() -> None:
    settings = NODE | {"ssl.keystore.key": node().encrypted_key(PASSWORD), "ssl.key.password": PASSWORD}
    assert connect(TRUST, settings).server.is_established


@pytest.mark.parametrize("auth", ["none", "requested", "required"])
def test_client_auth(auth: str) -> None:
    server = NODE | TRUST | {"ssl.client.auth": auth}
    shown = connect(TRUST | user().settings(), server).server.peer_certificate()
    assert shown == (None if auth == "none" else ssl.PEM_cert_to_DER_cert(user().certificate))
    if auth == "required":
        with pytest.raises(ssl.SSLError, match=r"(?i)peer did not return a certificate"):
            connect(TRUST, server)
    else:
        assert connect(TRUST, server).server.peer_certificate() is None


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_a_client_of_another_authority_is_refused(auth: str) -> None:
    stranger = foreign_authority().issue("CN=alice")
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(TRUST | stranger.settings(), NODE | TRUST | {"ssl.client.auth": auth})


def test_names_are_checked_unless_the_algorithm_is_empty() -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        connect(TRUST, NODE, "other.example")
    unchecked = TRUST | {"ssl.endpoint.identification.algorithm": ""}
    assert connect(unchecked, NODE, "other.example").client.is_established
    with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)certificate verify failed"):
        connect(foreign_authority().settings() | {"ssl.endpoint.identification.algorithm": ""}, NODE)


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        ({}, "TLSv1.3"),
        ({"ssl.enabled.protocols": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.enabled.protocols": "TLSv1.3 , TLSv1.2,TLSv1.1"}, "TLSv1.3"),
        ({"ssl.protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"ssl.protocol": "TLS"}, "TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}, "TLSv1.2"),
        (
            {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"},
            "TLSv1.3",
        ),
    ],
)
def test_versions(settings: dict[str, str], version: str) -> None:
    assert connect(TRUST | settings, NODE).client.version == version


def test_a_server_without_the_version_refuses() -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)unsupported protocol"):
        connect(TRUST | {"ssl.enabled.protocols": "TLSv1.2"}, NODE | {"ssl.enabled.protocols": "TLSv1.3"})


def test_a_certificate_in_the_trust_store_is_trusted_by_itself() -> None:
    own = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": node().certificate}
    assert connect(own, NODE).client.is_established


def test_settings_have_a_prefix() -> None:
    prefixed = {f"kafka.{name}": value for name, value in TRUST.items()}
    assert TlsPair(client_context(prefixed, "kafka."), server_context(NODE)).client.to_send()
    with pytest.raises(SecuritySettingError) as raised:
        client_context({"kafka.ssl.protocol": "SSL"}, "kafka.")
    assert raised.value.setting == "kafka.ssl.protocol"


MISTAKES = {
    "provider": ({"ssl.provider": "SunJSSE"}, "ssl.provider: barnabas has one provider, OpenSSL: remove it"),
    "engine": ({"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class: barnabas has no other engine: remove it"),
    "protocol": ({"ssl.protocol": "SSLv3"}, "ssl.protocol: 'SSLv3' is not one of TLS, TLSv1.2, TLSv1.3"),
    "enabled": ({"ssl.enabled.protocols": "TLSv1.4"}, "ssl.enabled.protocols: 'TLSv1.4' is not a version of TLS: TLSv1.2, TLSv1.3"),
    "old": ({"ssl.enabled.protocols": "TLSv1,TLSv1.1"}, "ssl.enabled.protocols: TLSv1,TLSv1.1 leaves neither TLSv1.2 nor TLSv1.3"),
    "suites": (
        {"ssl.cipher.suites": "TLS_RSA_WITH_RC4_128_MD5"},
        "ssl.cipher.suites: TLS_RSA_WITH_RC4_128_MD5 is not a cipher suite of TLS 1.2 or 1.3 that OpenSSL has under Java's name",
    ),
    "suites-of-another-version": (
        {"ssl.cipher.suites": "TLS_RSA_WITH_AES_256_GCM_SHA384", "ssl.enabled.protocols": "TLSv1.3"},
        "ssl.cipher.suites: has no suite of the versions that are enabled",
    ),
    "names": (
        {"ssl.endpoint.identification.algorithm": "ldaps"},
        "ssl.endpoint.identification.algorithm: 'ldaps' is not https, nor empty for no check of names",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "error"), MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes_of_a_client(settings: dict[str, str], error: str) -> None:
    with pytest.raises(SecuritySettingError) as raised:
        client_context(settings)
    assert str(raised.value) == error


def server_error(settings: dict[str, str]) -> str:
    with pytest.raises(SecuritySettingError) as raised:
        server_context(settings)
    assert PASSWORD not in str(raised.value)
    assert raised.value.__cause__ is None
    return str(raised.value)


def test_mistakes_of_a_server() -> None:
    assert server_error({}) == "ssl.keystore.location: is missing: a TLS listener needs a key and its certificate"
    assert server_error({"ssl.client.auth": "Required"}).endswith("'Required' is not one of none, requested, required")
    other_key = NODE | {"ssl.keystore.key": user().key}
    assert "the certificate is not that of the private key" in server_error(other_key)
    encrypted = NODE | {"ssl.keystore.key": node().encrypted_key(PASSWORD)}
    assert "ssl.key.password is wrong" in server_error(encrypted | {"ssl.key.password": "wrong-" + PASSWORD})
    assert "ssl.key.password is wrong" in server_error(encrypted | {"ssl.key.password": PASSWORD * 200})
    damaged = NODE | {"ssl.keystore.key": "-----BEGIN PRIVATE KEY-----\nQUJD\n-----END PRIVATE KEY-----"}
    assert "damaged" in server_error(damaged)


def test_a_damaged_certificate_in_the_trust_store(tmp_path: Path) -> None:
    text = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----"
    with pytest.raises(SecuritySettingError, match=r"^ssl\.truststore\.certificates: a certificate is not valid"):
        client_context({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": text})
    file = tmp_path / "ca.pem"
    file.write_text(text)
    with pytest.raises(SecuritySettingError, match=rf"^ssl\.truststore\.location: {file}: a certificate is not valid"):
        client_context({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(file)})


_WITHOUT_CRYPTOGRAPHY = """
import sys
from barnabas.security.certificate_names import certificate_name
from barnabas.security.tls_settings import client_context, server_context
from barnabas.security.tls_layer import TlsLayer
folder = sys.argv[1]
store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": folder + "/node.pem", "ssl.key.password": "secret"}
trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": folder + "/ca.pem"}
client = TlsLayer(client_context(store | trust), is_server=False, server_name="localhost")
server = TlsLayer(server_context(store | trust | {"ssl.client.auth": "required"}), is_server=True)
while data := client.to_send():
    server.received(data)
    client.received(server.to_send())
print(certificate_name(server.peer_certificate()))
try:
    client_context({"ssl.truststore.location": folder + "/trust.p12", "ssl.truststore.password": "secret"})
except ValueError as error:
    print(error)
print("cryptography" in sys.modules)
"""


@pytest.mark.slow
def test_pem_needs_no_cryptography(tmp_path: Path) -> None:
    hide(tmp_path, "cryptography")
    (tmp_path / "node.pem").write_text(node().encrypted_key("secret") + node().certificate)
    (tmp_path / "ca.pem").write_text(authority().certificate)
    (tmp_path / "trust.p12").write_bytes(authority().trust_store("secret"))
    run = subprocess.run(
        [sys.executable, "-c", _WITHOUT_CRYPTOGRAPHY, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.splitlines() == [
        "CN=localhost",
        f"ssl.truststore.location: {tmp_path}/trust.p12 needs cryptography: {install_command('security')}; or use PEM",
        "False",
    ]


def test_a_pair_carries_bytes() -> None:
    pair = connect(TRUST, NODE)
    pair.client.write(b"frame")
    pair.exchange()
    assert read_all(pair.server) == b"frame"
