"""The folder of a local cluster while it runs: the files of a node more, or of a node less.

The supervisor calls it in a thread, for one change at a time. What each change leaves when it is cut short: `local_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from barnabas.net.addresses import metrics_address
from barnabas.process.local_cluster import (
    LocalCluster,
    grow_cluster,
    id_of,
    metrics_addresses,
    set_size,
)

__all__ = ["ResizableFolder"]


class ResizableFolder:
    """Makes and retires the nodes of a cluster that runs.

    Args:
        metrics_listen: HOST:PORT of the first node's metrics; empty for none.
        secure: gives the last node of a cluster its certificate and its settings of security; None without security.
        format_all: formats data directories, as of `open_cluster`.

    Attributes:
        cluster_id: as clients see it.
        cluster: its nodes.
    """

    def __init__(
        self,
        root: Path,
        cluster: LocalCluster,
        *,
        metrics_listen: str = "",
        secure: Callable[[LocalCluster], None] | None = None,
        format_all: Callable[[LocalCluster, str], None] | None = None,
    ) -> None:
        self.cluster_id = id_of(root)
        self.cluster = cluster
        self._root = root
        self._metrics_listen = metrics_listen
        self._secure = secure
        self._format_all = format_all

    def __repr__(self) -> str:
        return f"<ResizableFolder {self._root} nodes={len(self.cluster.nodes)}>"

    def grow(self) -> str:
        """Add a broker; return where it serves its metrics, empty for nowhere.

        Raises:
            CannotStart: no port is free, or the node cannot be formatted.
            OSError: a file cannot be written.
        """
        nodes = len(self.cluster.nodes) + 1
        addresses = metrics_addresses(self.cluster, self._metrics_listen, nodes)
        address = metrics_address(self._metrics_listen, "--metrics-listen")
        reserved = range(address[1], address[1] + nodes) if address and address[1] else ()
        grown = grow_cluster(self._root, self.cluster, reserved=reserved, format_all=self._format_all)
        if self._secure is not None:
            self._secure(grown)
        set_size(self._root, nodes)
        self.cluster = grown
        return addresses[-1] if addresses else ""

    def shrink(self) -> None:
        """Take the last node out of the cluster, and leave its files where they are.

        Raises:
            OSError: a file cannot be written.
        """
        had = len(self.cluster.nodes)
        set_size(self._root, had - 1, had)
        self.cluster = LocalCluster(self.cluster.nodes[:-1])
