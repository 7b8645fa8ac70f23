"""The files of a local cluster: several nodes on this machine, for `barnabas start --nodes N`.

    DIR/
        cluster.properties         cluster.id and the number of nodes; written last
        .lock                      held while the cluster runs
        node-1/
            server.properties      as for `barnabas start --config`; kept by later starts
            node.log               what the node logs
            data/                  its data directory

- The first three nodes of a new cluster are brokers and the voters of a static quorum; others are brokers alone.
- A start with more nodes adds brokers. If the cluster had fewer than three nodes, the start also raises the settings for the
  number of copies, except those that somebody has changed.
- A start with fewer nodes starts all that the folder has. If the folders of the others, none of them a voter's, are gone, they are
  retired.
- A cluster that runs grows by a broker at a time (`grow_cluster`): its files, then the number of nodes, then its process. It shrinks
  by the number of nodes first, then by the process. The folder of a retired node stays; a cluster that grows again takes it back.
- Ports are chosen once: those of the clients first, from the given port on, then those of the controllers. Others that are in use
  are passed over. A later start keeps them, unless it names a port.
- Settings and logs name hosts, clients and topics: like a data directory, folders are made so that only their owner can enter them,
  and files so that only their owner can read them. The modes of what is there stay; the start says what others can read.
- Crash argument: without `cluster.properties` the cluster was not made to its end, and no node of it has run. The next start makes
  it again; formatting skips what is formatted, with the id that the first formatted node has. Nodes above the number in
  `cluster.properties` have not run either: the next start with more nodes makes them again.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import IO, NamedTuple

from barnabas.client.bootstrap import format_address
from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.directory.data_directory import CLIENT_PROPERTIES, CLUSTER_PROPERTIES, SECURE_DEV
from barnabas.log.disk import FILE_MODE, OsDisk
from barnabas.net.addresses import metrics_address
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.printable import printable

__all__ = [
    "HOST",
    "NODES_MAX",
    "OWN_SETTINGS",
    "LocalCluster",
    "LocalNode",
    "copies_settings",
    "environment",
    "grow_cluster",
    "id_of",
    "is_secured",
    "metrics_addresses",
    "nodes_to_start",
    "open_cluster",
    "secure_node",
    "set_size",
    "size_of",
]

NODES_MAX = 99
HOST = "127.0.0.1"

_FIRST_PORT = 9092
_VOTERS_MAX = 3
_COPIES_MAX = 3
_PORT_MAX = 65535
_OF_NOBODY = frozenset({"lost+found", ".DS_Store", ".gitkeep", ".lock", SECURE_DEV, CLIENT_PROPERTIES})

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

    def open_log(self) -> IO[bytes]:
        """Open its log to write at the end."""
        return open(self.log, "ab", opener=lambda path, flags: os.open(path, flags, FILE_MODE))

    @property
    def ports(self) -> list[int]:
        """The ports in its file: that of the clients, and that of a controller."""
        listeners = read_properties(str(self.properties))["listeners"].split(",")
        return [int(each.rpartition(":")[2]) for each in listeners]

    @property
    def roles(self) -> str:
        return "broker and controller" if self.is_controller else "broker"


def is_secured(folder: Path) -> bool:
    """Return whether `barnabas start --secure-dev` has secured this folder before."""
    return (folder / SECURE_DEV / "ca.pem").exists()


class LocalCluster(NamedTuple):
    nodes: tuple[LocalNode, ...]

    def written(self, folder: Path) -> list[str]:
        """Return the settings and logs that are there, relative to the cluster's folder."""
        files = (file for node in self.nodes for file in (node.properties, node.log))
        return [str(file.relative_to(folder)) for file in files if file.exists()]


def check_folder(folder: Path, nodes: int) -> None:
    """Look at a folder without changing anything.

    Raises:
        CannotStart: it holds something else than a cluster, or a cluster of more nodes.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CannotStart(f"{folder} is a file, not a directory (pass another --data-dir)")
    had = size_of(folder)
    if had is not None and not (had.isdecimal() and int(had) <= nodes):
        _check_are_retired(folder, had, nodes)
    own = {f"node-{n}" for n in range(1, nodes + 1)}
    names = sorted(path.name for path in folder.iterdir()) if had is None else []
    if "meta.properties" in names:
        raise CannotStart(
            f"{folder} is the data directory of one node (start it without --nodes, or pass another --data-dir)"
        )
    foreign = [name for name in names if name not in _OF_NOBODY and name not in own]
    if foreign:
        raise CannotStart(f"{folder} holds other files: {printable(foreign[0])} (pass another --data-dir)")


def _check_are_retired(folder: Path, had: str, nodes: int) -> None:
    """Check that a cluster may have fewer nodes than it had.

    Raises:
        CannotStart: a node that it would lose is there, or votes.
    """
    remedies = [f"pass --nodes {had}", "another --data-dir"]
    first = folder / "node-1" / "server.properties"
    if had.isdecimal() and first.exists() and _voters_of(folder) <= nodes:
        if not any((folder / f"node-{n}").exists() for n in range(nodes + 1, int(had) + 1)):
            return
        remedies[1:1] = [f"retire node {had}: `barnabas cluster drain {had}`, then remove its folder"]
    raise CannotStart(f"{folder} holds {had} nodes, not {nodes} ({', or '.join(remedies)})")


def open_cluster(
    folder: Path, nodes: int, port: int | None, format_all: Callable[[LocalCluster, str], None] | None = None
) -> LocalCluster:
    """Return the cluster of a folder that is locked; make it if the folder is empty, add the nodes that it lacks.

    Args:
        port: the first port of a new cluster, or from which an existing one gets new ones; None for 9092, or to keep them.
        format_all: formats the data directories with a cluster id, those that are not formatted yet; None to have that done by
            processes.

    Raises:
        CannotStart: as `check_folder`, or no ports are free, or a node cannot be formatted.
    """
    check_folder(folder, nodes)
    had = size_of(folder)
    voters = _VOTERS_MAX if had is None else _voters_of(folder)
    every = range(1, nodes + 1)
    cluster = LocalCluster(tuple(LocalNode(n, folder / f"node-{n}", n <= voters) for n in every))
    if had is None:
        _make(folder, cluster, _FIRST_PORT if port is None else port, format_all or _format)
        return cluster
    if int(had) < nodes:
        _grow(folder, cluster, int(had), format_all or _format)
        set_size(folder, nodes)
    elif int(had) > nodes:
        set_size(folder, nodes)
    if port is not None:
        _write_properties(cluster, port)
    return cluster


def nodes_to_start(folder: Path, nodes: int) -> int:
    """Return how many nodes a start has: those of the folder if they are more than it asks for, and all there."""
    had = size_of(folder) or ""
    others = range(nodes + 1, int(had) + 1) if had.isdecimal() else range(0)
    return int(had) if others and all((folder / f"node-{n}").exists() for n in others) else nodes


def grow_cluster(
    folder: Path,
    cluster: LocalCluster,
    *,
    reserved: Container[int] = (),
    format_all: Callable[[LocalCluster, str], None] | None = None,
) -> LocalCluster:
    """Make the files of one more broker for a cluster that runs, and return the cluster with it. `set_size` then makes it a part.

    Args:
        reserved: ports that it must not have.
        format_all: as of `open_cluster`.

    Raises:
        CannotStart: no port is free, or the node cannot be formatted.
    """
    node_id = len(cluster.nodes) + 1
    grown = LocalCluster((*cluster.nodes, LocalNode(node_id, folder / f"node-{node_id}", is_controller=False)))
    _grow(folder, grown, node_id - 1, format_all or _format, reserved)
    return grown


def set_size(folder: Path, nodes: int, had: int | None = None) -> None:
    """Write how many nodes a cluster has.

    Args:
        had: how many it had before, if it shrinks: the settings for the number of copies then shrink with it.
    """
    if had is not None:
        _set_copies([LocalNode(n, folder / f"node-{n}", False) for n in range(1, nodes + 1)], had, nodes)
    _write_size(folder, id_of(folder), nodes)


def size_of(folder: Path) -> str | None:
    """Return how many nodes the cluster in a folder has; None if there is no cluster."""
    try:
        return printable(read_properties(str(folder / CLUSTER_PROPERTIES)).get("nodes", "?"))
    except FileNotFoundError:
        return None


def id_of(folder: Path) -> str:
    """Return the cluster id of a cluster that was made."""
    return read_properties(str(folder / CLUSTER_PROPERTIES))["cluster.id"]


def _voters_of(folder: Path) -> int:
    return len(_voters(folder).split(","))


def _voters(folder: Path) -> str:
    return read_properties(str(folder / "node-1" / "server.properties"))["controller.quorum.voters"]


def _make(folder: Path, cluster: LocalCluster, port: int, format_all: Callable[[LocalCluster, str], None]) -> None:
    for node in cluster.nodes:
        OsDisk().mkdir(str(node.folder))
    _write_properties(cluster, port)
    cluster_id = _known_id(cluster) or _random_id()
    format_all(cluster, cluster_id)
    _write_size(folder, cluster_id, len(cluster.nodes))


def _grow(
    folder: Path,
    cluster: LocalCluster,
    had: int,
    format_all: Callable[[LocalCluster, str], None],
    reserved: Container[int] = (),
) -> None:
    """Make the brokers that a cluster gets in addition. Its voters stay as they are."""
    old, new, nodes = cluster.nodes[:had], cluster.nodes[had:], len(cluster.nodes)
    first = max(port for node in old for port in node.ports) + 1
    ports = free_ports(first, len(new), lambda port: port not in reserved and _is_free(port))
    for node, port in zip(new, ports, strict=True):
        OsDisk().mkdir(str(node.folder))
        _write_settings(node, _settings(node, nodes, [f"PLAINTEXT://{HOST}:{port}"], _voters(folder)))
    format_all(LocalCluster(new), id_of(folder))
    _set_copies(old, had, nodes)


def _set_copies(nodes: Sequence[LocalNode], had: int, now: int) -> None:
    """Give nodes the settings for the number of copies in a cluster of another size, except those that somebody has changed."""
    before = copies_settings(had)
    for node in nodes:
        settings = read_properties(str(node.properties))
        changed = {
            name: value for name, value in copies_settings(now).items() if settings.get(name) == before[name] != value
        }
        if changed:
            _write_settings(node, settings | changed)


def _write_size(folder: Path, cluster_id: str, nodes: int) -> None:
    text = f"# A cluster of `barnabas start --nodes`.\ncluster.id={cluster_id}\nnodes={nodes}\n"
    OsDisk().write_file_atomic(f"{folder}/{CLUSTER_PROPERTIES}", text.encode())


def _write_properties(cluster: LocalCluster, port: int) -> None:
    """Write the file of each node with ports from `port` on; other settings that are there stay."""
    voters = [node for node in cluster.nodes if node.is_controller]
    ports = free_ports(port, len(cluster.nodes) + len(voters))
    clients = dict(zip(cluster.nodes, ports, strict=False))
    controllers = dict(zip(voters, ports[len(clients) :], strict=True))
    quorum = ",".join(f"{each.node_id}@{HOST}:{p}" for each, p in controllers.items())
    for node in cluster.nodes:
        listeners = [f"PLAINTEXT://{HOST}:{clients[node]}"]
        if node.is_controller:
            listeners.append(f"CONTROLLER://{HOST}:{controllers[node]}")
        settings = _settings(node, len(cluster.nodes), listeners, quorum)
        if node.properties.exists():
            settings = {**read_properties(str(node.properties)), **settings}
        _write_settings(node, settings)


def secure_node(node: LocalNode, protocol: str, settings: Mapping[str, str]) -> None:
    """Give a node's listeners a protocol, and its file the settings of security; its ports and its other settings stay."""
    own = read_properties(str(node.properties))
    clients, *controllers = own["listeners"].split(",")
    listeners = [f"{protocol}://{clients.partition('://')[2]}", *controllers]
    _write_settings(node, {**own, "listeners": ",".join(listeners), **settings})


def _write_settings(node: LocalNode, settings: Mapping[str, str]) -> None:
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    OsDisk().write_file_atomic(str(node.properties), text.encode())


def _settings(node: LocalNode, nodes: int, listeners: Sequence[str], quorum: str) -> dict[str, str]:
    return {
        "process.roles": "broker,controller" if node.is_controller else "broker",
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": quorum,
        "log.dirs": str(node.data),
        **copies_settings(nodes),
    }


def copies_settings(nodes: int) -> dict[str, str]:
    """Return the settings for the number of copies in a cluster of this size."""
    copies = min(nodes, _COPIES_MAX)
    in_sync = str(max(1, copies - 1))
    return {
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


def metrics_addresses(cluster: LocalCluster, listen: str, nodes: int | None = None) -> list[str]:
    """Return where each node serves its metrics: the first at HOST:PORT, the others at the ports that follow; nowhere if it is empty.

    Args:
        nodes: how many; None for as many as the cluster has.

    Raises:
        CannotStart: it is not HOST:PORT, or too few ports follow, or a node has one of them for its clients.
    """
    address = metrics_address(listen, "--metrics-listen")
    if address is None:
        return []
    (host, first), wanted = address, len(cluster.nodes) if nodes is None else nodes
    if first + wanted - 1 > _PORT_MAX:
        raise CannotStart(f"--metrics-listen {listen}: {wanted} nodes need as many ports (pass a lower PORT)")
    # The nodes have not bound theirs yet.
    taken = {port for node in cluster.nodes for port in node.ports}
    if first:
        ports = range(first, first + wanted)
        if not taken.isdisjoint(ports):
            which = min(taken.intersection(ports))
            raise CannotStart(f"--metrics-listen {listen}: a node serves port {which} already (pass another PORT)")
        return [format_address(host, port) for port in ports]
    free = [port for port in free_ports(0, wanted + len(taken)) if port not in taken]
    return [format_address(host, port) for port in free[:wanted]]


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
    for node, process, said in zip(cluster.nodes, formatting, errors, strict=True):
        if process.returncode:
            why = last_error(said.splitlines()) or f"formatting ended with exit code {process.returncode}"
            raise CannotStart(f"node {node.node_id} cannot be formatted: {why}")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a node: its file decides, not variables that mean one node alone."""
    return {name: value for name, value in environ.items() if not name.startswith("KAFKA_") and name != "CLUSTER_ID"}


def last_error(lines: Sequence[str]) -> str:
    """Return why a process has ended, from its log; empty if its log does not say it.

    That is its last error, without the prefix, of a log of text or of JSON; else the last line of a traceback at the end of the log.
    """
    for line in reversed(lines):
        if line.startswith("error: "):
            return line.removeprefix("error: ")
        if line.startswith('{"time": ') and (said := _json_error(line)):
            return said
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last if "Traceback (most recent call last):" in lines and not last.startswith(" ") else ""


def _json_error(line: str) -> str:
    """Return the cause that a line of a JSON log has; empty if it is not an error of the process."""
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    if said["level"] == "CRITICAL":
        return str(said.get("exception", "")).rpartition("\n")[2]
    return str(said["message"]) if said["level"] == "ERROR" and said["logger"] == "barnabas.process.commands" else ""
