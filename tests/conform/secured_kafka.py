"""Apache Kafka with TLS, logins and an authorizer, as a production cluster has them, and the certificates that it needs.

PLAINTEXT   loopback, for the test itself: its user is a super user
SASL_SSL    SCRAM-SHA-512 and PLAIN
SSL         with the client's certificate
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apache_kafka import ApacheKafka, free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key, as PEM text."""

    certificate: str
    key: str


class Authority:
    """Signs certificates that last a day."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test's authority")])
        self._certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def __repr__(self) -> str:
        return "<Authority>"

    @property
    def certificate(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    def sign(self, name: str) -> Certificate:
        """Return a certificate of that name, for servers on 127.0.0.1 and for clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        signed = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
            .add_extension(addresses, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Certificate(
            signed.public_bytes(serialization.Encoding.PEM).decode(),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
        )

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )


class SecuredKafka(ApacheKafka):
    """Apache Kafka with users.

    Args:
        users: passwords by name, for both mechanisms.
    """

    def __init__(self, folder: Path, authority: Authority, users: Mapping[str, str]) -> None:
        super().__init__(folder)
        self.sasl_port, self.ssl_port = free_port(), free_port()
        self.users = dict(users)
        scram = (f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in users.items())
        self.format_options = tuple(part for each in scram for part in ("--add-scram", each))
        folder.mkdir(parents=True, exist_ok=True)
        server = authority.sign("broker")
        (folder / "server.pem").write_text(server.key + server.certificate)
        (folder / "authority.pem").write_text(authority.certificate)
        plain = " ".join(f'user_{name}="{password}"' for name, password in users.items())
        self.settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
            f",SASL_SSL://127.0.0.1:{self.sasl_port},SSL://127.0.0.1:{self.ssl_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {plain};"
            ),
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / "authority.pem"),
            "listener.name.ssl.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The test, the broker and the controller.
            "super.users": "User:ANONYMOUS",
        }

    @property
    def sasl_servers(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    @property
    def ssl_servers(self) -> str:
        return f"127.0.0.1:{self.ssl_port}"
