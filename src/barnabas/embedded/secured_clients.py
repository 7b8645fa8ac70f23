"""The settings of clients of a `barnabas.Broker` or `barnabas.Cluster`, secured or not."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.embedded.security_arguments import checked_security
from barnabas.security.dev_settings import ADMIN

if TYPE_CHECKING:
    from barnabas.embedded.development_security import DevelopmentSecurity

__all__ = ["SecuredClients", "make_security"]

__tracebackhide__ = True  # pytest's reports end at the caller's line


def make_security(
    what: str, security: str | None, users: Mapping[str, str] | None, acls: Iterable[str] | None
) -> DevelopmentSecurity | None:
    """Return what the arguments of `what`, a class, ask for; None for PLAINTEXT.

    Raises:
        ConfigError, TypeError: an argument is not valid.
        NotInstalled: TLS needs cryptography, which is not installed.
    """
    wanted = checked_security(security, users, acls)
    if wanted is None:
        return None
    # Without security none of this is imported.
    module = importlib.import_module("barnabas.embedded.development_security")
    made: DevelopmentSecurity = module.DevelopmentSecurity(what, wanted, time.time_ns() // 1_000_000)
    return made


class SecuredClients:
    """The part of `barnabas.Broker` and `barnabas.Cluster` for their clients, with `security` or without."""

    _security: DevelopmentSecurity | None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, the value of a client's `bootstrap.servers`."""
        raise NotImplementedError

    def _client_folder(self) -> Path:
        """Make the folder of the clients' files, which ends with the broker or the cluster."""
        raise NotImplementedError

    def client_settings(self, user: str = ADMIN, *, mechanism: str = "PLAIN") -> dict[str, str]:
        """Return the settings of a client by the names of Kafka's Java client, as a `--command-config` file has them.

        Without `security` this is the address alone. Files that the settings name end with the broker or the cluster.

        Args:
            user: one of `users`, or `admin`, a super user that every secured broker has.
            mechanism: with SASL, `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.

        Raises:
            ValueError: there is no such user or mechanism.
        """
        settings = {"bootstrap.servers": self.bootstrap_servers}
        if self._security is not None:
            settings |= self._security.client_settings(user, mechanism, self._client_folder)
        return settings

    def librdkafka_settings(self, user: str = ADMIN, *, mechanism: str = "PLAIN") -> dict[str, Any]:
        """Return the settings of a client by the names of librdkafka, for confluent-kafka.

        Args:
            user, mechanism: as for `client_settings`.
        """
        settings = self.client_settings(user, mechanism=mechanism)
        found: dict[str, Any] = {"bootstrap.servers": settings["bootstrap.servers"]}
        if self._security is not None:
            found |= self._security.librdkafka_settings(settings)
        return found
