"""A cluster whose quorum begins with one voter and changes: node 1 is formatted `--standalone`, the others `--no-initial-controllers`."""

from __future__ import annotations

from tests.cluster import views
from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess
from tests.cluster.waiting import wait_for


class GrowingCluster(Cluster):
    """Nodes are started one by one; those after the first are observers of the metadata log at first."""

    def properties(self, node: NodeProcess) -> dict[str, str]:
        found = super().properties(node)
        del found["controller.quorum.voters"]
        node.format_options = ("--standalone" if node.node_id == 1 else "--no-initial-controllers",)
        servers = ",".join(f"{each.host}:{each.controller_port}" for each in self.controllers)
        return found | {"controller.quorum.bootstrap.servers": servers}

    @property
    def controller_addresses(self) -> str:
        return ",".join(f"{node.host}:{node.controller_port}" for node in self.controllers if node.is_up)

    def directory_id(self, node_id: int) -> str:
        """Return the id of a node's metadata directory."""
        lines = (self[node_id].data_dir / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))

    def await_quorum(self, voters: set[int], observers: set[int]) -> int:
        """Wait until the leader counts these voters and observers, and all have read the same; return its id."""

        def find() -> int | None:
            found = views.quorum(self.any_address())
            if found is None or not self[found.leader_id].is_up:
                return None
            counted = {each.replica_id for each in found.current_voters}
            watching = {each.replica_id for each in found.observers}
            ends = {each.log_end_offset for each in (*found.current_voters, *found.observers)}
            is_so = counted == voters and watching == observers and -1 not in ends and max(ends) - min(ends) < 10
            return found.leader_id if is_so else None

        leader_id = wait_for(f"voters {sorted(voters)} and observers {sorted(observers)}", find)
        assert leader_id is not None
        return leader_id
