"""The security of a cluster under test: SASL_SSL on every listener, logins of nodes and clients, and an authorizer.

    listener      who dials it            mechanisms
    CLIENTS       clients and brokers     PLAIN, SCRAM-SHA-512
    CONTROLLER    brokers and voters      PLAIN

- Nodes log in as `node`, or after `roll` as `second`. Both are users of PLAIN everywhere; `node` is one of SCRAM from the start if a Java
  controller formats the cluster. `admin` is a super user like the nodes; what other users may do, access control lists say.
- Certificates are of one of two authorities, both of which everybody trusts; `roll` changes the authority and the user of a node.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.dev_certificates import DevelopmentAuthority

if TYPE_CHECKING:
    from tests.cluster.node_process import NodeProcess

CLIENTS = "CLIENTS"
PLAIN = "PLAIN"
SCRAM = "SCRAM-SHA-512"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NODES = ("node", "second")
ADMIN = "admin"
_MODULES = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule required",
    SCRAM: "org.apache.kafka.common.security.scram.ScramLoginModule required",
}


def password(user: str) -> str:
    """Return a user's password."""
    return f"{user}-secret"


class ClusterSecurity:
    """The security of one cluster.

    Args:
        folder: has the certificates.
        users: of PLAIN, beside the nodes and `admin`.
        between: the mechanism by which brokers log in at each other.
    """

    def __init__(self, folder: Path, users: tuple[str, ...] = (), between: str = PLAIN) -> None:
        self.folder, self.between = folder, between
        self._users = (*NODES, ADMIN, *users)
        now_ms = int(time.time() * 1000)
        self.authorities = [DevelopmentAuthority.create(now_ms, f"CN=authority {number}") for number in (1, 2)]
        folder.mkdir(parents=True, exist_ok=True)
        self.trusted = folder / "authorities.pem"
        self.trusted.write_text("".join(each.certificate for each in self.authorities))
        self._turns: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<ClusterSecurity between={self.between} rolled={sorted(self._turns)}>"

    # Nodes

    def roll(self, node: NodeProcess) -> None:
        """Let a node have a certificate of the other authority, and log in as the other user, from its next start on."""
        self._turns[node.node_id] = 1 - self._turns.get(node.node_id, 0)

    def properties(self, node: NodeProcess) -> dict[str, str]:
        """Return the settings of a node's listeners and of what it dials, and write its key."""
        turn = self._turns.get(node.node_id, 0)
        issued = self.authorities[turn].issue(f"CN=node-{node.node_id}", hosts=["localhost", node.host])
        key = self.folder / f"node-{node.node_id}.pem"
        key.touch(0o600)
        key.write_text(issued.key + issued.certificate)
        found = {
            "listener.security.protocol.map": f"{CLIENTS}:SASL_SSL,CONTROLLER:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(key),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "sasl.mechanism.controller.protocol": PLAIN,
            "listener.name.controller.sasl.enabled.mechanisms": PLAIN,
            "listener.name.controller.plain.sasl.jaas.config": self._server(NODES[turn]),
            "authorizer.class.name": AUTHORIZER,
            "super.users": ";".join(f"User:{each}" for each in (*NODES, ADMIN)),
        }
        if node.is_broker:
            found |= {
                # Kafka compares the inter-broker mechanism with this one, not with the listener's.
                "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
                "sasl.mechanism.inter.broker.protocol": self.between,
                "listener.name.clients.plain.sasl.jaas.config": self._server(NODES[turn]),
                "listener.name.clients.scram-sha-512.sasl.jaas.config": login(NODES[turn], SCRAM),
            }
        return found

    def format_options(self, node: NodeProcess) -> tuple[str, ...]:
        """Return the arguments of `storage format` by which nodes are users of SCRAM from the start."""
        if self.between != SCRAM or not node.is_controller:
            return ()
        pairs = (f"{SCRAM}=[name={user},password={password(user)}]" for user in NODES)
        return tuple(word for pair in pairs for word in ("--add-scram", pair))

    def _server(self, own: str) -> str:
        users = " ".join(f'user_{user}="{password(user)}"' for user in self._users)
        return f'{_MODULES[PLAIN]} username="{own}" password="{password(own)}" {users};'

    # Clients

    def client(self, user: str = ADMIN, mechanism: str = PLAIN, secret: str | None = None) -> dict[str, str]:
        """Return a client's settings in Java's names.

        Args:
            secret: the password, if it is not `password(user)`.
        """
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": login(user, mechanism, secret),
        }

    def admin(self) -> ClientSecurity:
        """Return how the test itself connects."""
        return self.of(self.client())

    @staticmethod
    def of(settings: Mapping[str, str]) -> ClientSecurity:
        """Return the security of these settings of a client."""
        found = client_security(settings)
        assert found is not None
        return found

    def librdkafka(self, user: str = ADMIN, mechanism: str = PLAIN, secret: str | None = None) -> dict[str, str]:
        """Return the settings of a client that uses librdkafka."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trusted),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password(user) if secret is None else secret,
        }

    def command_config(self, user: str = ADMIN, mechanism: str = PLAIN) -> Path:
        """Return a file for Kafka's tools."""
        path = self.folder / f"{user}-{mechanism}.properties"
        path.write_text("".join(f"{name}={text}\n" for name, text in self.client(user, mechanism).items()))
        return path


def login(user: str, mechanism: str, secret: str | None = None) -> str:
    """Return the `sasl.jaas.config` of one user."""
    return f'{_MODULES[mechanism]} username="{user}" password="{password(user) if secret is None else secret}";'
