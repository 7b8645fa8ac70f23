"""`barnabas start --secure-dev`: TLS, a login and ACLs for development, made in the data directory, for one node or a cluster.

    DIR/
        client.properties          the settings of the super user `admin`, with its password and the address; for --command-config
        secure-dev/
            ca-key.pem  ca.pem     the authority; written last
        node-N/node.pem            of a cluster: the key of node N and its certificate, new at each start

- A later start keeps authority and password. A cluster that was secured stays so without the option.
- `bootstrap.servers` is where the last start listens. A start that lets the system choose its ports leaves it as it was.
- Files are for their owner alone. A single node gets its key in memory.
- Crash argument: each file is written whole or not. Without `ca.pem` the authority was not made, and no client has trusted it.
  `client.properties` without it is written again, with the password that it has.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.config.endpoints import parse_port
from barnabas.directory.data_directory import CLIENT_PROPERTIES, SECURE_DEV, check_is_free
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.net.addresses import EVERY_ADDRESS, dialable
from barnabas.process.local_cluster import HOST, LocalCluster, LocalNode, secure_node
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.dev_settings import ADMIN, client_login, node_settings
from barnabas.security.jaas import parse_jaas
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.requirements import NotInstalled, needed_by

__all__ = ["PROTOCOL", "SecureDev"]

PROTOCOL = "SASL_SSL"

_HOSTS = ("localhost", "127.0.0.1", "::1")
_JAAS = "sasl.jaas.config"
_SERVERS = "bootstrap.servers"


class SecureDev:
    """The authority and the password of a data directory.

    Args:
        folder: the data directory, or that of a cluster; it is made if it does not exist.
        now_ms: epoch milliseconds.
        is_alone: the folder is the data directory of one node.

    Raises:
        CannotStart: cryptography is not installed, a file of an earlier start cannot be read, or the folder is not a node's.
        OSError: a file cannot be written.
    """

    def __init__(self, folder: Path, now_ms: int, *, is_alone: bool) -> None:
        self._folder = folder.absolute()
        self._disk = OsDisk()
        if is_alone and not (folder / META_PROPERTIES).exists():
            check_is_free(self._disk, str(folder), remedies(embedded=False).other_directory)
        try:
            with needed_by("barnabas start --secure-dev", "security"):
                self._authority = self._opened(now_ms)
        except NotInstalled as error:
            raise CannotStart(f"{error.sentence} ({error.command})") from None
        self._password = self._known_password() or secrets.token_urlsafe(18)
        self._write_client({})

    def __repr__(self) -> str:
        return f"<SecureDev {self._folder}>"

    @property
    def hint(self) -> str:
        """The line for the user: which file clients need."""
        return f"clients need --command-config {self.client_properties}"

    @property
    def client_properties(self) -> Path:
        return self._folder / CLIENT_PROPERTIES

    def settings(self, addresses: Sequence[str]) -> dict[str, str]:
        """Return the settings of a node alone, with its key in them, and tell clients its addresses.

        Args:
            addresses: where it listens, `HOST:PORT`; a host that means every one counts as this machine's name.
        """
        self._serve_at(addresses)
        hosts = [address.rpartition(":")[0].strip("[]") for address in addresses]
        issued = self._authority.issue("CN=node-1", hosts=[*dict.fromkeys([*_HOSTS, *_names(hosts)])])
        return self._node_settings(issued.settings() | self._authority.settings(), is_alone=True)

    def secure(self, cluster: LocalCluster) -> None:
        """Write certificates and settings of every node of a cluster that does not run, and tell clients its addresses."""
        self._secure(cluster, cluster.nodes)

    def secure_last(self, cluster: LocalCluster) -> None:
        """Write those of the last node, which is new; the others may run."""
        self._secure(cluster, cluster.nodes[-1:])

    def _secure(self, cluster: LocalCluster, nodes: Sequence[LocalNode]) -> None:
        self._serve_at([f"{HOST}:{node.ports[0]}" for node in cluster.nodes])
        for node in nodes:
            issued = self._authority.issue(f"CN=node-{node.node_id}", hosts=_HOSTS)
            store = node.folder / "node.pem"
            self._disk.write_file_atomic(str(store), (issued.key + issued.certificate + issued.authority).encode())
            stores = {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(store),
                **self._trusted(),
            }
            secure_node(node, PROTOCOL, self._node_settings(stores, is_alone=False))

    def _node_settings(self, stores: dict[str, str], *, is_alone: bool) -> dict[str, str]:
        return node_settings(
            PROTOCOL,
            stores=stores,
            users={ADMIN: self._password},
            nodes=(),
            is_alone=is_alone,
            asks_certificates=False,
            has_authorizer=True,
        )

    def _opened(self, now_ms: int) -> DevelopmentAuthority:
        folder = self._folder / SECURE_DEV
        certificate, key = folder / "ca.pem", folder / "ca-key.pem"
        if certificate.exists():
            try:
                return DevelopmentAuthority.load(key.read_text(), certificate.read_text(), now_ms)
            except (ValueError, OSError):
                raise CannotStart(
                    f"{certificate} and {key} are no authority: remove both to have a new one, which clients must trust again"
                ) from None
        made = DevelopmentAuthority.create(now_ms)
        self._disk.mkdir(str(folder))
        self._disk.write_file_atomic(str(key), made.key().encode())
        self._disk.write_file_atomic(str(certificate), made.certificate.encode())
        return made

    def _known_password(self) -> str | None:
        """Read the password from `client.properties`, which an earlier start wrote; return None before the first start.

        Raises:
            CannotStart: the file has no password.
        """
        if not self.client_properties.exists():
            return None
        try:
            found = parse_jaas(read_properties(str(self.client_properties)).get(_JAAS, "")).options.get("password")
        except (ValueError, OSError, SecuritySettingError):
            found = None
        if not found:
            raise CannotStart(
                f"{self.client_properties} has no password of a login (remove the file: the next start makes a new password)"
            )
        return found

    def _serve_at(self, addresses: Sequence[str]) -> None:
        """Name the addresses in `client.properties`, as this machine reaches them; an address whose port is not known yet is left out."""
        split = [(host.strip("[]"), parse_port(port)) for host, _, port in (each.rpartition(":") for each in addresses)]
        if known := [dialable(host, port) for host, port in split if port]:
            self._write_client({_SERVERS: ",".join(known)})

    def _write_client(self, more: Mapping[str, str]) -> None:
        """Write the file, unless it is there and right; what its owner has added stays."""
        there = read_properties(str(self.client_properties)) if self.client_properties.exists() else {}
        own = {"security.protocol": PROTOCOL, **self._trusted(), **client_login("PLAIN", ADMIN, self._password), **more}
        if there | own != there:
            text = "".join(f"{name}={_escaped(value)}\n" for name, value in (there | own).items())
            self._disk.write_file_atomic(str(self.client_properties), text.encode())

    def _trusted(self) -> dict[str, str]:
        return {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._folder / SECURE_DEV / "ca.pem"),
        }


def _names(hosts: Sequence[str]) -> list[str]:
    return [socket.gethostname() if host in EVERY_ADDRESS else host for host in hosts]


def _escaped(value: str) -> str:
    """Return a value as a properties file has it."""
    return value.replace("\\", "\\\\")
