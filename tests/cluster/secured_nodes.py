"""The security of a cluster's listeners, between brokers and among voters too: certificates, passwords and ACLs of a run.

    listener      who dials it            mechanisms
    SASL_SSL      clients and brokers     PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
    CONTROLLER    brokers and voters      PLAIN

- Nodes log in as `admin`, or after `roll` as `second`; both are super users. What other users may do, access control lists say.
- Certificates are of one of two authorities, both of which everybody trusts; `roll` changes the authority and the user of a node.
- The settings serve both kinds of node.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import ADMIN, CLIENT_MECHANISMS, client_login, node_settings
from barnabas.security.jaas import jaas_text

if TYPE_CHECKING:
    from tests.cluster.node_process import NodeProcess

SECOND = "second"
SCRAM = "SCRAM-SHA-512"
_JAAS = "sasl.jaas.config"


class SecuredNodes:
    """The authorities and the passwords of a cluster.

    Args:
        folder: the certificates' files are in it.
        protocol: of every listener.
        users: of PLAIN, beside `admin` and `second`.
        between: the mechanism by which brokers log in at each other.

    Attributes:
        client: the settings of a client that may do everything, as a properties file.
        password: of its user.
        authorities: the first is that of every node until it is rolled, the other one afterwards.
    """

    def __init__(
        self, folder: Path, protocol: str = "SASL_SSL", *, users: tuple[str, ...] = (), between: str = "PLAIN"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.protocol = protocol
        self._folder = folder
        self._between = between
        self._users = dict.fromkeys((ADMIN, SECOND, *users))
        self._passwords: dict[str, str] = {}
        self._rolled: set[int] = set()
        self.password = self.password_of(ADMIN)
        now_ms = int(time.time() * 1000)
        self.authorities = [DevelopmentAuthority.create(now_ms, f"CN=authority {number}") for number in (1, 2)]
        (folder / "ca.pem").write_text("".join(each.certificate for each in self.authorities))
        self.client = folder / "client.properties"
        settings = self.client_settings(ADMIN, "PLAIN")
        self.client.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def __repr__(self) -> str:
        return f"<SecuredNodes {self.protocol} in {self._folder}, rolled {sorted(self._rolled)}>"

    def password_of(self, user: str) -> str:
        """Return a user's password, which is always the same."""
        return self._passwords.setdefault(user, secrets.token_hex(12))

    # Nodes

    def roll(self, node: NodeProcess) -> None:
        """Let a node have a certificate of the other authority, and log in as the other user, from its next start on."""
        self._rolled ^= {node.node_id}

    def settings(self, node: NodeProcess) -> dict[str, str]:
        """Return the settings of security of a node, but for its listeners; write its key."""
        turn = int(node.node_id in self._rolled)
        stores: dict[str, str] = {}
        if self.protocol.endswith("SSL"):
            issued = self.authorities[turn].issue(
                f"CN=node-{node.node_id}", hosts=[*dict.fromkeys(["localhost", "127.0.0.1", node.host])]
            )
            store = self._folder / f"node-{node.node_id}.pem"
            store.touch(0o600)
            store.write_text(issued.key + issued.certificate + issued.authority)
            stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store), **self._trust()}
        found = node_settings(
            self.protocol,
            stores=stores,
            users={user: self.password_of(user) for user in self._users},
            nodes=(),
            is_alone=False,
            asks_certificates=False,
            has_authorizer=True,
        )
        if not self.protocol.startswith("SASL"):
            return found
        found |= self._logins((ADMIN, SECOND)[turn])
        if node.is_broker:
            return found
        # Of a listener that the node does not have.
        of_brokers = (
            "inter.broker.",
            "sasl.mechanism.inter.broker.",
            "sasl.enabled.",
            f"listener.name.{self.protocol.lower()}.",
        )
        return {name: value for name, value in found.items() if not name.startswith(of_brokers)}

    def _logins(self, own: str) -> dict[str, str]:
        """Return what differs from the settings for development: the user of a node, its mechanism, and what Java needs."""
        login = {"username": own, "password": self.password_of(own)}
        clients, controllers = f"listener.name.{self.protocol.lower()}.", "listener.name.controller."
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
        listed = {f"user_{user}": self.password_of(user) for user in self._users}
        return {
            "super.users": f"User:{ADMIN};User:{SECOND}",
            # Apache Kafka compares the inter-broker mechanism with this setting, not with the listener's.
            "sasl.enabled.mechanisms": ",".join(CLIENT_MECHANISMS),
            "sasl.mechanism.inter.broker.protocol": self._between,
            f"{clients}plain.{_JAAS}": jaas_text(plain, {**login, **listed}),
            f"{controllers}plain.{_JAAS}": jaas_text(plain, {**login, **listed}),
            # Apache Kafka wants a login for each mechanism of a listener.
            **{
                f"{clients}{mechanism.lower()}.{_JAAS}": client_login(mechanism, own, login["password"])[_JAAS]
                for mechanism in CLIENT_MECHANISMS
                if mechanism != "PLAIN"
            },
        }

    def format_options(self, node: NodeProcess) -> tuple[str, ...]:
        """Return the arguments of `storage format` by which the nodes are users of SCRAM from the start."""
        if self._between == "PLAIN" or not node.is_controller:
            return ()
        pairs = (f"{self._between}=[name={user},password={self.password_of(user)}]" for user in (ADMIN, SECOND))
        return tuple(word for pair in pairs for word in ("--add-scram", pair))

    # Clients

    def client_settings(self, user: str, mechanism: str = "PLAIN", password: str | None = None) -> dict[str, str]:
        """Return the settings of a client in Java's names.

        Args:
            password: if it is not the user's.
        """
        secret = self.password_of(user) if password is None else password
        return {"security.protocol": self.protocol, **self._trust(), **client_login(mechanism, user, secret)}

    def client_security(self, user: str, mechanism: str = "PLAIN", password: str | None = None) -> ClientSecurity:
        """Return how a client dials; the arguments are those of `client_settings`."""
        found = client_security(self.client_settings(user, mechanism, password))
        assert found is not None
        return found

    def _trust(self) -> dict[str, str]:
        if not self.protocol.endswith("SSL"):
            return {}
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._folder / "ca.pem")}
