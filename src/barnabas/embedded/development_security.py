"""The security of one `barnabas.Broker` or `barnabas.Cluster`: an authority, certificates, passwords, and what clients need of them.

    Broker, Cluster ──► DevelopmentSecurity ──► settings of each node       (keys and passwords, in memory)
                                            ──► settings of clients         (files in a folder: ca.pem, alice-client.pem, …)

- The authority lives as long as the object, so a broker that starts again keeps its clients.
- The folder is made when a client's settings are first asked for. It and its files are for their owner alone.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.embedded.security_arguments import SecurityArguments
from barnabas.security.client_security import client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import ADMIN, CLIENT_MECHANISMS, client_login, node_settings
from barnabas.security.sasl.scram_keys import MIN_ITERATIONS, ScramMechanism, new_salt, salted_password
from barnabas.words.nearest import did_you_mean
from barnabas.words.requirements import needed_by

__all__ = ["DevelopmentSecurity"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

_HOSTS = ("localhost", "127.0.0.1", "::1")


class DevelopmentSecurity:
    """The authority, the users and the ACLs of a broker or a cluster.

    Args:
        what: the class that the caller made, for errors.
        now_ms: epoch milliseconds.

    Raises:
        NotInstalled: TLS needs cryptography, which is not installed.
    """

    def __init__(self, what: str, arguments: SecurityArguments, now_ms: int) -> None:
        self.protocol = arguments.protocol
        self.acls = arguments.acls
        self.users = {ADMIN: secrets.token_urlsafe(18), **arguments.users}
        self._asks_certificates = bool(arguments.users) or arguments.acls is not None
        self._authority: DevelopmentAuthority | None = None
        self._folder: Path | None = None
        if self.protocol.endswith("SSL"):
            with needed_by(f"{what}(security={self.protocol!r})", "security"):
                self._authority = DevelopmentAuthority.create(now_ms)

    def __repr__(self) -> str:
        return f"<DevelopmentSecurity {self.protocol} users={len(self.users)}>"

    def node_settings(self, node: int, nodes: int, *, is_alone: bool) -> dict[str, str]:
        """Return the settings of one node, but for its listeners.

        Args:
            nodes: how many there are.
        """
        stores: dict[str, str] = {}
        if self._authority is not None:
            issued = self._authority.issue(f"CN=node-{node}", hosts=_HOSTS)
            stores = issued.settings() | self._authority.settings()
        return node_settings(
            self.protocol,
            stores=stores,
            users=self.users,
            nodes=[f"node-{each}" for each in range(1, nodes + 1)],
            is_alone=is_alone,
            asks_certificates=self._asks_certificates,
            has_authorizer=self.acls is not None,
        )

    def scram_credentials(self) -> list[tuple[str, int, bytes, bytes]]:
        """Return user, number of the mechanism, salt and salted password for each user and mechanism; none without SASL."""
        found = []
        for user, password in self.users.items() if self.protocol.startswith("SASL") else ():
            for mechanism in ScramMechanism:
                salt = new_salt(os.urandom)
                salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
                found.append((user, mechanism.number, salt, salted))
        return found

    def librdkafka_settings(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Return these settings of a client by the names of librdkafka, but for its addresses."""
        return librdkafka_security(client_security(settings))

    def client_settings(self, user: str, mechanism: str, folder: Callable[[], Path]) -> dict[str, str]:
        """Return the settings of a client, in the names of Kafka's Java client, but for its addresses.

        Args:
            folder: makes the folder of its files.

        Raises:
            ValueError: there is no such user or mechanism.
        """
        if user not in self.users:
            raise ValueError(f"there is no user {user!r}: the users are {', '.join(self.users)}")
        if mechanism not in CLIENT_MECHANISMS:
            raise ValueError(
                f"mechanism={mechanism!r} is not one of {', '.join(CLIENT_MECHANISMS)}{did_you_mean(mechanism, CLIENT_MECHANISMS)}"
            )
        settings = {"security.protocol": self.protocol}
        if self._authority is not None:
            settings["ssl.truststore.type"] = "PEM"
            settings["ssl.truststore.location"] = self._file("ca.pem", folder, self._certificate)
        if self.protocol == "SSL":
            settings["ssl.keystore.type"] = "PEM"
            settings["ssl.keystore.location"] = self._file(f"{user}-client.pem", folder, lambda: self._key_of(user))
        else:
            settings |= client_login(mechanism, user, self.users[user])
        return settings

    def forget_folder(self) -> None:
        """Take note that the clients' folder is gone."""
        self._folder = None

    def _certificate(self) -> str:
        assert self._authority is not None, self
        return self._authority.certificate

    def _key_of(self, user: str) -> str:
        assert self._authority is not None, self
        issued = self._authority.issue(f"CN={user}")
        return issued.key + issued.certificate + issued.authority

    def _file(self, name: str, folder: Callable[[], Path], text: Callable[[], str]) -> str:
        if self._folder is None:
            self._folder = folder()
        path = self._folder / name
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text())
        return str(path)
