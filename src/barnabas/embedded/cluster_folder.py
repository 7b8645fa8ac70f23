"""The resources of a `barnabas.Cluster` while it runs: the folder and its lock, the ports, the processes."""

from __future__ import annotations

import os
import random
import shutil
import socket
import sys
from pathlib import Path

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.embedded.cluster_process import ClusterProcess
from barnabas.log.disk import DiskLock, DiskLocked, OsDisk
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.process.commands import epoch_ms
from barnabas.process.local_cluster import HOST, LocalCluster, LocalNode, check_folder, open_cluster
from barnabas.security.dev_settings import CONTROLLER

__all__ = ["PORT_TAKEN", "Held", "empty_disk", "open_held", "secured_listeners"]

PORT_TAKEN = "Address already in use"


class Held:
    """The resources of a cluster until it releases them: processes, ports, the lock of a folder, a temporary folder."""

    def __init__(self, temporary: Path | None) -> None:
        self.processes: dict[int, ClusterProcess] = {}
        self.ports: list[socket.socket] = []
        self.lock: DiskLock | None = None
        self._temporary = temporary
        self._pid = 0

    def __repr__(self) -> str:
        return f"<Held processes={len(self.processes)} ports={len(self.ports)}>"

    def release(self, pid: int) -> None:
        """Release everything, but not in a fork of the process that made it."""
        if os.getpid() != pid:
            return
        for process in self.processes.values():
            process.kill()
        for port in self.ports:
            port.close()
        if self.lock is not None:
            self.lock.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def open_held(folder: Path, nodes: int, held: Held, port: int = 0) -> LocalCluster:
    """Return the cluster of a folder, made if the folder is empty, with its ports and the folder's lock held.

    Args:
        port: the first port; 0 for those that the cluster has, or free ones.

    Raises:
        CannotStart: the folder cannot be used.
    """
    try:
        check_folder(folder, nodes)
        OsDisk().mkdir(str(folder))
        held.lock = OsDisk().lock(f"{folder}/.lock")
        cluster = open_cluster(folder, nodes, port or (None if any(folder.glob("*.properties")) else 0), _format)
        if sys.platform == "linux":
            # Elsewhere a port that is held cannot be bound.
            for node in cluster.nodes:
                for port in node.ports:
                    held.ports.append(_hold(port))
    except DiskLocked:
        raise CannotStart(f"data_dir={folder} is in use by another cluster") from None
    except OSError as error:
        raise CannotStart(f"cannot use data_dir={folder}: {error.strerror or error}") from None
    return cluster


def empty_disk(node: LocalNode, cluster_id: str) -> None:
    """Delete the data of a node that is down, and format its directory."""
    shutil.rmtree(node.data)
    _format(LocalCluster((node,)), cluster_id)


def secured_listeners(node: LocalNode, protocol: str) -> str:
    """Return the listeners of a node's ports, with a protocol for clients in place of PLAINTEXT."""
    names = (protocol, CONTROLLER)
    return ",".join(f"{name}://{HOST}:{port}" for name, port in zip(names, node.ports, strict=False))


def _hold(port: int) -> socket.socket:
    """Bind a port without listening: the system gives it to no other process, and a node may bind it too."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((HOST, port))
    except OSError as error:
        held.close()
        raise CannotStart(f"port {port}: {PORT_TAKEN}") from error
    return held


def _format(cluster: LocalCluster, cluster_id: str) -> None:
    """Format the nodes' data directories, in this process."""
    disk, draw = OsDisk(), random.SystemRandom()
    for node in cluster.nodes:
        config = BrokerConfig.from_properties(
            {**read_properties(str(node.properties)), "barnabas.metadata.flush": "false"}
        )
        if not disk.exists(f"{node.data}/{META_PROPERTIES}"):
            format_directory(
                disk, str(node.data), cluster_id, node.node_id, config, draw, now_ms=epoch_ms(), standalone=False
            )
