"""SASL_SSL on every listener of a cluster, between brokers and among voters: certificates, passwords and ACLs of a run."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import ADMIN, client_login, node_settings


class SecuredNodes:
    """The authority and the password of a cluster.

    Args:
        folder: the certificates' files are in it.
        protocol: of every listener.

    Attributes:
        client: the settings of a client that may do everything, as a properties file.
        password: of its user.
    """

    def __init__(self, folder: Path, protocol: str = "SASL_SSL") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.protocol = protocol
        self.password = secrets.token_urlsafe(18)
        self._folder = folder
        self._authority = DevelopmentAuthority.create(int(time.time() * 1000))
        (folder / "ca.pem").write_text(self._authority.certificate)
        self.client = folder / "client.properties"
        settings = {"security.protocol": protocol, **self._trust(), **client_login("PLAIN", ADMIN, self.password)}
        self.client.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def __repr__(self) -> str:
        return f"<SecuredNodes {self.protocol} in {self._folder}>"

    def settings(self, node_id: int, host: str) -> dict[str, str]:
        """Return the settings of security of a node, but for its listeners."""
        stores: dict[str, str] = {}
        if self.protocol.endswith("SSL"):
            issued = self._authority.issue(
                f"CN=node-{node_id}", hosts=[*dict.fromkeys(["localhost", "127.0.0.1", host])]
            )
            store = self._folder / f"node-{node_id}.pem"
            store.write_text(issued.key + issued.certificate + issued.authority)
            stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store), **self._trust()}
        return node_settings(
            self.protocol,
            stores=stores,
            users={ADMIN: self.password},
            nodes=(),
            is_alone=False,
            asks_certificates=False,
            has_authorizer=True,
        )

    def _trust(self) -> dict[str, str]:
        if not self.protocol.endswith("SSL"):
            return {}
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._folder / "ca.pem")}
