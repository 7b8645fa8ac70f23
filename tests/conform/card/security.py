"""The ways in which the card's clients connect, and both brokers with a listener of that way beside the plain one.

The test itself uses the listener without TLS and login; it is ANONYMOUS there, a super user. The card's user is no super user: ACLs allow
it what the scenarios do. An authority that lives as long as the run signs the certificates, and a token server on loopback the tokens of
OAUTHBEARER. A delegation token is of one broker: its user has made it there, with a password.
"""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import apache_kafka

from barnabas.client.admin import Admin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.sasl.scram_keys import MIN_ITERATIONS, ScramMechanism, new_salt
from tests.conform.brokers import READY_SECONDS, BarnabasProcess, KafkaProcess
from tests.token_server import AUDIENCE, ISSUER, TokenServer

USER = "alice"
MODULES = "org.apache.kafka.common.security."


@dataclass(frozen=True)
class Way:
    """A security protocol, with SASL a mechanism, and whether a delegation token takes the place of the password."""

    protocol: str
    mechanism: str | None = None
    by_token: bool = False

    @property
    def name(self) -> str:
        return "/".join([self.protocol, *([self.mechanism] if self.mechanism else []), *(["token"] * self.by_token)])

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
        Way("SASL_SSL", "OAUTHBEARER"),
        Way("SASL_SSL", "SCRAM-SHA-256", by_token=True),
    )
}
"""By name. A way more is a line here, and what `listeners`, `admit` and each driver make of its mechanism."""


@dataclass(frozen=True)
class Login:
    """What the card's user logs in with: a name and a password, or a token's id and its HMAC."""

    user: str
    password: str = field(repr=False)


@dataclass
class Security:
    """What a run connects with; its token server serves while it is entered.

    Attributes:
        folder: of the certificates and the drivers' files.
    """

    way: Way
    folder: Path
    password: str = field(default_factory=lambda: os.urandom(12).hex(), repr=False)

    def __post_init__(self) -> None:
        self.tokens = TokenServer(lifetime_s=86_400) if self.way.mechanism == "OAUTHBEARER" else None
        authority = DevelopmentAuthority.create(int(time.time() * 1000))
        node, user = authority.issue("CN=node", hosts=["127.0.0.1"]), authority.issue(f"CN={USER}")
        files = {"ca.pem": authority.certificate, "node.pem": node.key + node.certificate, "user.pem": user.certificate,
                 "user.key": user.key}  # fmt: skip
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def __enter__(self) -> Self:
        if self.tokens:
            self.tokens.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self.tokens:
            self.tokens.__exit__(None, None, None)

    def _write_way(self, broker: str, login: Login) -> None:
        has_login = self.way.mechanism is not None
        found = {
            "protocol": self.way.protocol,
            "mechanism": self.way.mechanism,
            "user": login.user if has_login else None,
            "password": login.password if has_login else None,
            "is_token": self.way.by_token,
            "token_url": f"{self.tokens.url}/token" if self.tokens else None,
            "ca": str(self.folder / "ca.pem"),
            "certificate": None if has_login else str(self.folder / "user.pem"),
            "key": None if has_login else str(self.folder / "user.key"),
        }
        (self.folder / f"{broker}.json").write_text(json.dumps(found))

    def driver(self, command: list[str], broker: str) -> list[str]:
        """Return the command of a driver that connects so to the broker of this name, once `admit` was there."""
        return ["env", f"CARD_SECURITY={self.folder / broker}.json", *command]

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
        prefix += f"{self.way.mechanism.lower()}."
        module = "scram.ScramLoginModule required"
        if self.way.mechanism == "PLAIN":
            module = f'plain.PlainLoginModule required user_{USER}="{self.password}"'
        if self.tokens:
            module = "oauthbearer.OAuthBearerLoginModule required"
            settings |= {
                f"{prefix}sasl.server.callback.handler.class": f"{MODULES}oauthbearer.OAuthBearerValidatorCallbackHandler",
                "sasl.oauthbearer.jwks.endpoint.url": f"{self.tokens.url}/keys",
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "sasl.oauthbearer.expected.issuer": ISSUER,
            }
        if self.way.by_token:
            settings["delegation.token.secret.key"] = self.password
        return settings | {
            "sasl.enabled.mechanisms": self.way.mechanism,
            f"{prefix}sasl.jaas.config": f"{MODULES}{module};",
        }

    def admit(self, broker: SecuredBarnabas | SecuredKafka) -> None:
        """Make the user, and allow it every operation on topics, groups, transactional ids and the cluster."""
        kinds = {ResourceType.TOPIC: "*", ResourceType.GROUP: "*", ResourceType.TRANSACTIONAL_ID: "*",
                 ResourceType.CLUSTER: "kafka-cluster"}  # fmt: skip
        acls = [
            AclBinding(kind, name, PatternType.LITERAL, self.way.principal, "*", AclOperation.ALL, Permission.ALLOW)
            for kind, name in kinds.items()
        ]
        with Admin(broker.bootstrap_servers) as admin:
            assert admin.create_acls(acls) == [None] * len(acls)
            for mechanism in ScramMechanism:
                if mechanism.label == self.way.mechanism:
                    salt = new_salt(os.urandom)
                    assert admin.set_password(USER, mechanism, self.password, salt, MIN_ITERATIONS) is None
        login = Login(USER, self.password)
        if self.way.by_token:
            login = self._token(broker, login)
        self._write_way(broker.name, login)

    def _token(self, broker: SecuredBarnabas | SecuredKafka, login: Login) -> Login:
        """Make a delegation token of the user, and return it when the broker knows it."""
        address, by_password = f"127.0.0.1:{broker.secured_port}", replace(self.way, by_token=False)
        self._await_login(address, by_password, login)
        with Admin(address, security=client_security(self._settings(by_password, login))) as alice:
            made = alice.create_token()
        token = Login(made.token_id, base64.b64encode(made.hmac).decode())
        self._await_login(address, self.way, token)
        return token

    def _await_login(self, address: str, way: Way, login: Login) -> None:
        """Log in; Apache Kafka's broker learns of users and tokens after its controller has answered."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                with Admin(address, security=client_security(self._settings(way, login))) as admin:
                    admin.list_topics()
                    return
            except KafkaError as error:
                if error.code is not ErrorCode.SASL_AUTHENTICATION_FAILED or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _settings(self, way: Way, login: Login) -> dict[str, str]:
        """Return the settings of a client that logs in by SCRAM, by Java's names."""
        extra = ' tokenauth="true"' * way.by_token
        return {
            "security.protocol": way.protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
            "sasl.mechanism": way.mechanism or "",
            "sasl.jaas.config": f'{MODULES}scram.ScramLoginModule required username="{login.user}" password="{login.password}"{extra};',
        }


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
        if security.tokens:
            self.jvm_options = (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={security.tokens.url}/keys",)


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
