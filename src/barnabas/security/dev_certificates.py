"""A certificate authority for development and tests, and certificates of nodes and users.

An authority lives as long as its certificates are needed, and its key is in memory unless the caller writes it. Keys are of the curve
P-256, which TLS of every Java accepts, or of RSA. Stores are PEM, or PKCS12 that Java 11 and later read (AES, HMAC-SHA256).

    authority = DevelopmentAuthority.create(now_ms)
    node = authority.issue("CN=node-1", hosts=["localhost", "127.0.0.1"])
    listener = server_context(node.settings() | authority.settings())

Needs cryptography. Not for production: there are no revocations.

Source: RFC 5280.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

__all__ = ["DevelopmentAuthority", "IssuedCertificate"]

_CLOCKS_APART = timedelta(hours=1)
"""A certificate is valid from so long before it was made, for machines whose clocks are late."""
_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A private key, its certificate and the authority's.

    Attributes:
        key: PEM, PKCS8, not encrypted.
        certificate: PEM.
        authority: PEM, the certificate of the authority.
    """

    key: str = field(repr=False)
    certificate: str = field(repr=False)
    authority: str = field(repr=False)

    def settings(self, prefix: str = "") -> dict[str, str]:
        """Return `ssl.keystore.*` with the key itself in them."""
        return {
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.key": self.key,
            f"{prefix}ssl.keystore.certificate.chain": self.certificate,
        }

    def encrypted_key(self, password: str) -> str:
        """Return the key as encrypted PKCS8, in PEM."""
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            PrivateFormat,
            load_pem_private_key,
        )

        key = load_pem_private_key(self.key.encode(), None)
        encryption = BestAvailableEncryption(password.encode())
        return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def pkcs12(self, password: str, alias: str = "barnabas") -> bytes:
        """Return a key store, with the authority in the chain."""
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
        from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

        return serialize_key_and_certificates(
            alias.encode(),
            load_pem_private_key(self.key.encode(), None),  # type: ignore[arg-type]  # An EC or RSA key, as `issue` makes it.
            x509.load_pem_x509_certificate(self.certificate.encode()),
            [x509.load_pem_x509_certificate(self.authority.encode())],
            BestAvailableEncryption(password.encode()),
        )


class DevelopmentAuthority:
    """An authority: a key, and a certificate that it has signed itself."""

    def __init__(
        self, key: EllipticCurvePrivateKey | RSAPrivateKey, certificate: x509.Certificate, now_ms: int
    ) -> None:
        self._key = key
        self._certificate = certificate
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"<DevelopmentAuthority {self._certificate.subject.rfc4514_string()}>"

    @classmethod
    def create(
        cls, now_ms: int, name: str = "CN=barnabas development CA", *, days: int = 3650, kind: str = "ec"
    ) -> DevelopmentAuthority:
        """Make an authority.

        Args:
            now_ms: epoch milliseconds.
            name: of its subject, as RFC 4514 writes it.
            days: of validity, from now.
            kind: of its key, `ec` or `rsa`.
        """
        from cryptography import x509

        key = _new_key(kind)
        subject = x509.Name.from_rfc4514_string(name)
        builder = (
            _builder(subject, subject, key, now_ms, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(key, builder.sign(key, _hash()), now_ms)

    @classmethod
    def load(cls, key: str, certificate: str, now_ms: int) -> DevelopmentAuthority:
        """Return an authority from its key and certificate in PEM.

        Raises:
            ValueError: they are not PEM, or not of one authority.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        own: Any = load_pem_private_key(key.encode(), None)
        loaded = x509.load_pem_x509_certificate(certificate.encode())
        if loaded.public_key() != own.public_key():
            raise ValueError("the certificate is not that of the key")
        return cls(own, loaded, now_ms)

    @property
    def certificate(self) -> str:
        """The authority's certificate in PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM).decode()

    def key(self) -> str:
        """Return the authority's private key in PEM."""
        return _pem(self._key)

    def settings(self, prefix: str = "") -> dict[str, str]:
        """Return `ssl.truststore.*` that trust this authority alone."""
        return {f"{prefix}ssl.truststore.type": "PEM", f"{prefix}ssl.truststore.certificates": self.certificate}

    def trust_store(self, password: str, alias: str = "ca") -> bytes:
        """Return a trust store in PKCS12, whose entry Java trusts."""
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
        from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

        entry = PKCS12Certificate(self._certificate, alias.encode())
        return serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = (),
        days: int = 825,
        valid_from_ms: int | None = None,
        kind: str = "ec",
    ) -> IssuedCertificate:
        """Make a key and a certificate for a node or a user; it serves for both sides of TLS.

        Args:
            name: of the subject, as RFC 4514 writes it: `CN=alice,OU=orders`.
            hosts: names and addresses of a node.
            days: of validity, from `valid_from_ms`; so a certificate that has expired can be made too.
            valid_from_ms: epoch milliseconds; None for the time of the authority.
            kind: of the key, `ec` or `rsa`.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key(kind)
        since_ms = self._now_ms if valid_from_ms is None else valid_from_ms
        builder = (
            _builder(x509.Name.from_rfc4514_string(name), self._certificate.subject, key, since_ms, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        signed = builder.sign(self._key, _hash())
        return IssuedCertificate(_pem(key), signed.public_bytes(Encoding.PEM).decode(), self.certificate)


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, since_ms: int, days: int) -> x509.CertificateBuilder:
    from cryptography import x509

    since = datetime.fromtimestamp(since_ms // 1000, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since - _CLOCKS_APART)
        .not_valid_after(since + timedelta(days=days))
    )


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=not is_authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _new_key(kind: str) -> EllipticCurvePrivateKey | RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
    assert kind == "ec", kind
    return ec.generate_private_key(ec.SECP256R1())


def _hash() -> Any:
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


def _pem(key: Any) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()
