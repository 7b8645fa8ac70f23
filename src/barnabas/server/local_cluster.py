"""The files of a local cluster: several nodes on this machine, for `barnabas start --nodes N`.

    DIR/
        cluster.properties         cluster.id and the number of nodes; written last
        .lock                      held while the cluster runs
        node-1/
            server.properties      as for `barnabas start --config`; kept by later starts
            node.log               what the node logs
            data/                  its data directory

- The first three nodes are brokers and the voters of a static quorum; later ones are brokers alone.
- Ports are chosen once: those of the clients first, from the given port on, then those of the controllers. Others that are in use
  are passed over. A later start keeps them, unless it names a port.
- Crash argument: without `cluster.properties` the cluster was not made to its end, and no node of it has run. The next start makes
  it again; formatting skips what is formatted, with the id that the first formatted node has.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from barnabas.client.properties import read_properties
from barnabas.printable import printable
from barnabas.protocol.primitives import uuid_to_str
from barnabas.server.cannot_start import CannotStart

__all__ = [
    "CLUSTER_PROPERTIES",
    "NODES_MAX",
    "OWN_SETTINGS",
    "LocalCluster",
    "LocalNode",
    "environment",
    "open_cluster",
]

CLUSTER_PROPERTIES = "cluster.properties"
NODES_MAX = 99
HOST = "127.0.0.1"

_FIRST_PORT = 9092
_VOTERS_MAX = 3
_COPIES_MAX = 3
_PORT_MAX = 65535
_OF_NOBODY = frozenset({"lost+found", ".DS_Store", ".gitkeep", ".lock"})

OWN_SETTINGS = frozenset(
    {
        "process.roles",
        "node.id",
        "broker.id",
        "cluster.id",
        "listeners",
        "advertised.listeners",
        "controller.listener.names",
        "listener.security.protocol.map",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "log.dir",
        "log.dirs",
        "barnabas.metrics.listen",
    }
)
"""Settings that each node of a cluster has for itself."""


class LocalNode(NamedTuple):
    """One node.

    Attributes:
        folder: holds its file, its log and its data.
    """

    node_id: int
    folder: Path
    is_controller: bool

    @property
    def properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "node.log"

    @property
    def roles(self) -> str:
        return "broker and controller" if self.is_controller else "broker"


class LocalCluster(NamedTuple):
    nodes: tuple[LocalNode, ...]


def check_folder(folder: Path, nodes: int) -> None:
    """Look at a folder without changing anything.

    Raises:
        CannotStart: it holds something else than a cluster, or a cluster of another size.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CannotStart(f"{folder} is a file, not a directory (pass another --data-dir)")
    had = _size(folder)
    if had not in (None, str(nodes)):
        raise CannotStart(f"{folder} holds {had} nodes, not {nodes} (pass --nodes {had}, or another --data-dir)")
    own = {f"node-{n}" for n in range(1, nodes + 1)}
    names = sorted(path.name for path in folder.iterdir()) if had is None else []
    if "meta.properties" in names:
        raise CannotStart(
            f"{folder} is the data directory of one node (start it without --nodes, or pass another --data-dir)"
        )
    foreign = [name for name in names if name not in _OF_NOBODY and name not in own]
    if foreign:
        raise CannotStart(f"{folder} holds other files: {printable(foreign[0])} (pass another --data-dir)")


def open_cluster(
    folder: Path, nodes: int, port: int | None, format_all: Callable[[LocalCluster, str], None] | None = None
) -> LocalCluster:
    """Return the cluster of a folder that was checked; make it if the folder is empty.

    Args:
        port: the first port of a new cluster, or from which an existing one gets new ones; None for 9092, or to keep them.
        format_all: formats the data directories with a cluster id, those that are not formatted yet; None to have that done by
            processes.

    Raises:
        CannotStart: no ports are free, or a node cannot be formatted.
    """
    every = range(1, nodes + 1)
    cluster = LocalCluster(tuple(LocalNode(n, folder / f"node-{n}", n <= _VOTERS_MAX) for n in every))
    if _size(folder) is None:
        _make(folder, cluster, _FIRST_PORT if port is None else port, format_all or _format)
    elif port is not None:
        _write_properties(cluster, port)
    return cluster


def _size(folder: Path) -> str | None:
    """Return how many nodes the cluster in a folder has; None if there is no cluster."""
    try:
        return printable(read_properties(str(folder / CLUSTER_PROPERTIES)).get("nodes", "?"))
    except FileNotFoundError:
        return None


def _make(folder: Path, cluster: LocalCluster, port: int, format_all: Callable[[LocalCluster, str], None]) -> None:
    for node in cluster.nodes:
        node.folder.mkdir(exist_ok=True)
    _write_properties(cluster, port)
    cluster_id = _known_id(cluster) or _random_id()
    format_all(cluster, cluster_id)
    text = f"# A cluster of `barnabas start --nodes`.\ncluster.id={cluster_id}\nnodes={len(cluster.nodes)}\n"
    _write(folder / CLUSTER_PROPERTIES, text)


def _write_properties(cluster: LocalCluster, port: int) -> None:
    """Write the file of each node with ports from `port` on; other settings that are there stay."""
    voters = [node for node in cluster.nodes if node.is_controller]
    ports = free_ports(port, len(cluster.nodes) + len(voters))
    clients = dict(zip(cluster.nodes, ports, strict=False))
    controllers = dict(zip(voters, ports[len(clients) :], strict=True))
    for node in cluster.nodes:
        settings = _settings(node, len(cluster.nodes), clients[node], controllers)
        if node.properties.exists():
            settings = {**read_properties(str(node.properties)), **settings}
        _write(node.properties, "".join(f"{name}={value}\n" for name, value in settings.items()))


def _settings(node: LocalNode, nodes: int, port: int, controllers: Mapping[LocalNode, int]) -> dict[str, str]:
    copies = min(nodes, _COPIES_MAX)
    in_sync = str(max(1, copies - 1))
    listeners = [f"PLAINTEXT://{HOST}:{port}"]
    if node.is_controller:
        listeners.append(f"CONTROLLER://{HOST}:{controllers[node]}")
    return {
        "process.roles": "broker,controller" if node.is_controller else "broker",
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{each.node_id}@{HOST}:{p}" for each, p in controllers.items()),
        "log.dirs": str(node.data),
        "default.replication.factor": str(copies),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def free_ports(first: int, wanted: int, is_free: Callable[[int], bool] | None = None) -> list[int]:
    """Return ports that nobody listens on, from `first` on; any if it is 0.

    Raises:
        CannotStart: there are not so many.
    """
    if first == 0:
        sockets = [socket.socket() for _ in range(wanted)]
        try:
            for each in sockets:
                each.bind((HOST, 0))
            return [each.getsockname()[1] for each in sockets]
        finally:
            for each in sockets:
                each.close()
    found: list[int] = []
    for port in count(first):
        if port > _PORT_MAX:
            raise CannotStart(f"{wanted} ports are needed, and {first} to {_PORT_MAX} has fewer (pass a lower --port)")
        if (is_free or _is_free)(port):
            found.append(port)
        if len(found) == wanted:
            return found
    raise AssertionError("count() does not end")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As a broker binds: a connection of a moment ago does not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _known_id(cluster: LocalCluster) -> str | None:
    for node in cluster.nodes:
        meta = node.data / "meta.properties"
        if meta.exists():
            return read_properties(str(meta)).get("cluster.id")
    return None


def _random_id() -> str:
    # A leading dash would look like an option.
    while (drawn := uuid_to_str(os.urandom(16))).startswith("-"):
        pass
    return drawn


def _format(cluster: LocalCluster, cluster_id: str) -> None:
    """Format the nodes' data directories, all at once.

    Raises:
        CannotStart: one cannot be formatted.
    """
    formatting = [
        subprocess.Popen(
            [sys.executable, "-m", "barnabas", "storage", "format", "-g", "-t", cluster_id, "-c", str(node.properties)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(os.environ),
            text=True,
        )
        for node in cluster.nodes
    ]
    errors = [process.communicate()[1] for process in formatting]
    for process, said in zip(formatting, errors, strict=True):
        if process.returncode:
            raise CannotStart(last_error(said.splitlines()) or f"formatting ended with exit code {process.returncode}")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a node: its file decides, not variables that mean one node alone."""
    return {name: value for name, value in environ.items() if not name.startswith("KAFKA_") and name != "CLUSTER_ID"}


def last_error(lines: Sequence[str]) -> str:
    """Return the last error that a process has printed, without its prefix; empty if there is none."""
    return next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), "")


def _write(path: Path, text: str) -> None:
    """Write a file that is whole if it is there."""
    aside = path.with_name(f"{path.name}.tmp")
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
