"""The ways in which the card's clients connect, and both brokers with a listener of that way beside the plain one.

The test itself uses the listener without TLS and login; it is ANONYMOUS there, a super user. The card's user is no super user: ACLs allow
it what the scenarios do. An authority that lives as long as the run signs the certificates.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import apache_kafka

from barnabas.client.admin import Admin
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.sasl.scram_keys import MIN_ITERATIONS, ScramMechanism, new_salt
from tests.conform.brokers import BarnabasProcess, KafkaProcess

USER = "alice"
MODULES = "org.apache.kafka.common.security."


@dataclass(frozen=True)
class Way:
    """A security protocol, and with SASL a mechanism."""

    protocol: str
    mechanism: str | None = None

    @property
    def name(self) -> str:
        return f"{self.protocol}/{self.mechanism}" if self.mechanism else self.protocol

    @property
    def principal(self) -> str:
        return f"User:{USER}" if self.mechanism else f"User:CN={USER}"


WAYS = {
    way.name: way
    for way in (
        Way("SSL"),  # with the client's certificate
        Way("SASL_SSL", "PLAIN"),
        Way("SASL_SSL", "SCRAM-SHA-256"),
        Way("SASL_SSL", "SCRAM-SHA-512"),
    )
}
"""By name. A way more is a line here, and what `listeners`, `admit` and each driver make of its mechanism."""


@dataclass
class Security:
    """What a run connects with.

    Attributes:
        folder: of the certificates and the drivers' file.
    """

    way: Way
    folder: Path
    password: str = field(default_factory=lambda: os.urandom(12).hex(), repr=False)

    def __post_init__(self) -> None:
        authority = DevelopmentAuthority.create(int(time.time() * 1000))
        node, user = authority.issue("CN=node", hosts=["127.0.0.1"]), authority.issue(f"CN={USER}")
        files = {"ca.pem": authority.certificate, "node.pem": node.key + node.certificate, "user.pem": user.certificate,
                 "user.key": user.key, "way.json": json.dumps(self._way())}  # fmt: skip
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def _way(self) -> dict[str, str | None]:
        login = self.way.mechanism is not None
        return {
            "protocol": self.way.protocol,
            "mechanism": self.way.mechanism,
            "user": USER if login else None,
            "password": self.password if login else None,
            "ca": str(self.folder / "ca.pem"),
            "certificate": None if login else str(self.folder / "user.pem"),
            "key": None if login else str(self.folder / "user.key"),
        }

    def driver(self, command: list[str]) -> list[str]:
        """Return the command of a driver that connects so."""
        return ["env", f"CARD_SECURITY={self.folder / 'way.json'}", *command]

    def listeners(self, plain: int, secured: int, **others: int) -> dict[str, str]:
        """Return a node's settings of its listeners, given with their ports."""
        ports = {"PLAINTEXT": plain, self.way.protocol: secured, **others}
        prefix = f"listener.name.{self.way.protocol.lower()}."
        settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "node.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        if self.way.mechanism is None:
            return settings | {f"{prefix}ssl.client.auth": "required"}
        module = f'plain.PlainLoginModule required user_{USER}="{self.password}"'
        if self.way.mechanism.startswith("SCRAM"):
            module = "scram.ScramLoginModule required"
        return settings | {
            "sasl.enabled.mechanisms": self.way.mechanism,
            f"{prefix}{self.way.mechanism.lower()}.sasl.jaas.config": f"{MODULES}{module};",
        }

    def admit(self, bootstrap: str) -> None:
        """Make the user, and allow it every operation on topics, groups, transactional ids and the cluster."""
        kinds = {ResourceType.TOPIC: "*", ResourceType.GROUP: "*", ResourceType.TRANSACTIONAL_ID: "*",
                 ResourceType.CLUSTER: "kafka-cluster"}  # fmt: skip
        acls = [
            AclBinding(kind, name, PatternType.LITERAL, self.way.principal, "*", AclOperation.ALL, Permission.ALLOW)
            for kind, name in kinds.items()
        ]
        with Admin(bootstrap) as admin:
            assert admin.create_acls(acls) == [None] * len(acls)
            for mechanism in ScramMechanism:
                if mechanism.label == self.way.mechanism:
                    salt = new_salt(os.urandom)
                    assert admin.set_password(USER, mechanism, self.password, salt, MIN_ITERATIONS) is None


class SecuredBarnabas(BarnabasProcess):
    """barnabas with both listeners; its settings are in a file, since they have a password."""

    def __init__(self, folder: Path, security: Security, settings: dict[str, str]) -> None:
        super().__init__(folder)
        self.secured_port = apache_kafka.free_port()
        self.settings = settings | security.listeners(self.port, self.secured_port) | {"log.dirs": str(self.data_dir)}
        folder.mkdir(parents=True)
        self.file = folder / "server.properties"
        self.file.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))

    def arguments(self) -> list[str]:
        return ["--config", str(self.file)]


class SecuredKafka(KafkaProcess):
    """Apache Kafka with both listeners."""

    def __init__(self, folder: Path, security: Security, settings: dict[str, str]) -> None:
        super().__init__(folder)
        self.secured_port = apache_kafka.free_port()
        self.settings = settings | security.listeners(self.port, self.secured_port, CONTROLLER=self.controller_port)
        protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", security.way.protocol: security.way.protocol}
        self.settings["listener.security.protocol.map"] = ",".join(map(":".join, protocols.items()))


def secured_broker(
    name: str, folder: Path, security: Security, settings: dict[str, str]
) -> SecuredBarnabas | SecuredKafka:
    """Return a broker of this name, not started."""
    if name == "barnabas":
        return SecuredBarnabas(folder, security, settings)
    return SecuredKafka(folder, security, settings)


def address_of(broker: object, plain: str) -> str:
    """Return where clients of the card connect to: the secured listener if there is one."""
    return f"127.0.0.1:{broker.secured_port}" if isinstance(broker, (SecuredBarnabas, SecuredKafka)) else plain
