"""A cluster whose quorum begins with one voter and changes: node 1 is formatted `--standalone`, the others `--no-initial-controllers`."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess


class GrowingCluster(Cluster):
    """Nodes are started one by one; those after the first begin as observers of the metadata log."""

    def properties(self, node: NodeProcess) -> dict[str, str]:
        found = super().properties(node)
        del found["controller.quorum.voters"]
        node.format_options = ("--standalone" if node.node_id == 1 else "--no-initial-controllers",)
        servers = ",".join(f"{each.host}:{each.controller_port}" for each in self.controllers)
        return found | {"controller.quorum.bootstrap.servers": servers}

    @property
    def controller_addresses(self) -> str:
        return ",".join(f"{node.host}:{node.controller_port}" for node in self.controllers if node.is_up)
