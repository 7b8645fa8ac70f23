"""The development authority, read by cryptography and by OpenSSL."""

from __future__ import annotations

import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.tls_settings import client_context, server_context
from tests.security.certificates import authority, foreign_authority, node, now_ms
from tests.security.tls_pair import TlsPair

DAY_MS = 86_400_000


def test_a_certificate_has_the_name_and_the_hosts() -> None:
    issued = authority().issue("CN=node-1,OU=brokers", hosts=["node-1.example", "10.0.0.1", "::1"])
    certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
    assert certificate.subject.rfc4514_string() == "CN=node-1,OU=brokers"
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(each.value) for each in hosts] == ["node-1.example", "10.0.0.1", "::1"]
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority().certificate.encode()))


@pytest.mark.parametrize("kind", ["ec", "rsa"])
@pytest.mark.slow
def test_both_kinds_of_key_serve(kind: str) -> None:
    own = DevelopmentAuthority.create(now_ms(), kind=kind)
    issued = own.issue("CN=localhost", hosts=["localhost"], kind=kind)
    pair = TlsPair(client_context(own.settings()), server_context(issued.settings()))
    pair.exchange()
    assert pair.client.is_established


def test_a_certificate_can_have_expired() -> None:
    old = authority().issue("CN=localhost", hosts=["localhost"], days=1, valid_from_ms=now_ms() - 3 * DAY_MS)
    pair = TlsPair(client_context(authority().settings()), server_context(old.settings()))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        pair.exchange()


def test_an_authority_is_loaded_again() -> None:
    own = authority()
    again = DevelopmentAuthority.load(own.key(), own.certificate, now_ms())
    issued = again.issue("CN=localhost", hosts=["localhost"])
    pair = TlsPair(client_context(own.settings()), server_context(issued.settings()))
    pair.exchange()
    assert pair.server.is_established
    with pytest.raises(ValueError, match="not that of the key"):
        DevelopmentAuthority.load(own.key(), foreign_authority().certificate, now_ms())


def test_stores_and_encrypted_keys_need_their_password() -> None:
    issued = node()
    stored = load_pkcs12(issued.pkcs12("secret", alias="mine"), b"secret")
    assert stored.cert is not None
    assert stored.cert.friendly_name == b"mine"
    assert len(stored.additional_certs) == 1
    assert load_pem_private_key(issued.encrypted_key("secret").encode(), b"secret")
    with pytest.raises(ValueError, match="password"):
        load_pem_private_key(issued.encrypted_key("secret").encode(), b"other")


def test_reprs_have_no_key() -> None:
    assert "PRIVATE" not in repr(node())
    assert repr(authority()) == "<DevelopmentAuthority CN=the tests' authority>"
