"""A node of a cluster in the simulated world: broker, controller, or both, with a disk that is formatted before the first start."""

from __future__ import annotations

import random
from collections.abc import Iterable

from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.simulation.broker_node import PORT, BrokerNode
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.node import Surroundings

CONTROLLER_PORT = 9093
CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"


class ClusterNode(BrokerNode):
    """A machine for one node of a cluster.

    Args:
        node_id: its `node.id`.
        roles: of `process.roles`.
        voters: id and host of each controller.
        has_moving_voters: whether the voters are those of the log, and each controller makes itself one.
        properties: of every node of the cluster.
    """

    def __init__(
        self,
        world: Surroundings,
        node_id: int,
        host: str,
        roles: tuple[str, ...],
        voters: Iterable[tuple[int, str]],
        properties: dict[str, str],
        *,
        has_moving_voters: bool = False,
    ) -> None:
        voters = list(voters)
        listeners = [f"PLAINTEXT://{host}:{PORT}"] if "broker" in roles else []
        if "controller" in roles:
            listeners.append(f"CONTROLLER://{host}:{CONTROLLER_PORT}")
        own = {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
        if has_moving_voters:
            own["controller.quorum.bootstrap.servers"] = ",".join(f"{at}:{CONTROLLER_PORT}" for _, at in voters)
            own["controller.quorum.auto.join.enable"] = str("controller" in roles).lower()
        else:
            own["controller.quorum.voters"] = ",".join(f"{voter}@{at}:{CONTROLLER_PORT}" for voter, at in voters)
        super().__init__(world, f"node {node_id}", host, own | properties)
        self.node_id, self.roles = node_id, roles
        self._first_voters = VoterSet.of(_voter(*each) for each in voters) if has_moving_voters else None

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    def format(self) -> None:
        """Format the disk, as `barnabas storage format` does: each of its `log.dirs`."""
        for number, root in enumerate(self.config.log_dirs):
            self._format(root, random.Random(f"{self.node_id} {root}" if number else self.node_id))

    @property
    def config(self) -> BrokerConfig:
        """Its settings, as its next process reads them."""
        return BrokerConfig.from_properties(self.properties)

    def _format(self, root: str, dice: random.Random) -> None:
        config = self.config
        format_directory(
            self.disk,
            root,
            CLUSTER_ID,
            self.node_id,
            config,
            dice,
            now_ms=self.now_ms(),
            standalone=False,
            initial_voters=self._first_voters,
            has_metadata=root == config.metadata_dir,
        )

    def replace_directory(self, root: str) -> None:
        """Put a new disk in the place of one of its `log.dirs`, formatted as its operator would, with an id of its own; it must be down."""
        assert not self.is_up, f"{self.name} is up"
        self.note(f"gets an empty {root}")
        self.disk.rmtree(root)
        self._format(root, random.Random(self._rng.getrandbits(32)))

    def wipe(self) -> None:
        """Put a new disk into the machine, formatted as its operator would; it must be down."""
        assert not self.is_up, f"{self.name} is up"
        self.note("gets an empty disk")
        self.disk = SimDisk(self._rng.getrandbits(32), now_ms=self.now_ms)
        self.format()

    # Its view of the cluster

    @property
    def raft(self) -> RaftNode:
        """Its part in the quorum; it must have joined."""
        return self.server.quorum.driver.node

    @property
    def image(self) -> MetadataImage | None:
        """The metadata that it has published; None before its process has joined the quorum."""
        quorum = getattr(getattr(self, "server", None), "quorum", None) if self.is_up else None
        return None if quorum is None else quorum.loader.image

    def registration(self, partition: tuple[str, int]) -> PartitionRegistration | None:
        """Return what it knows of a partition, a topic and an index, now; None while it does not serve."""
        name, index = partition
        image = self.image if self.serves else None
        topic = None if image is None else image.topics.by_name.get(name)
        return None if topic is None else topic.partitions.get(index)


def _voter(node_id: int, host: str) -> Voter:
    """Return a controller as the operator names it when the disks are formatted."""
    endpoint = VoterEndpoint("CONTROLLER", host, CONTROLLER_PORT)
    return Voter(node_id, random.Random(f"directory of {node_id}").randbytes(16), (endpoint,))
