"""A cluster of several nodes, the interface that scenarios use."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from barnabas.client.cluster_metadata import PartitionMetadata
from tests.cluster import views
from tests.cluster.network import Network
from tests.cluster.node_process import KINDS, NodeProcess
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.waiting import wait_for

CONTROLLER_ID = 100
MIXED_RELEASE = "4.3-IV0"
# A failover need not take Kafka's nine seconds here; everything else is Kafka's default or the least that three replicas need.
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
    # A scenario moves leaders itself.
    "auto.leader.rebalance.enable": "false",
}


class Cluster:
    """Nodes 1, 2 and 3, each broker and controller; or brokers 1, 2 and 3 and separate controllers.

    Args:
        kind: `apache-kafka` or `barnabas`.
        folder: everything is in it.
        nodes: how many brokers.
        has_own_controller: the controllers are separate nodes, from node 100 on.
        controllers: how many separate controllers there are, if any.
        settings: of every node, added to `SETTINGS` or replacing them.
        others: by id, the kinds of the nodes that are not of `kind`.
        network: the nodes run in its namespaces; None for this machine's own network.
        secured: what secures every listener; None for plain text.
    """

    def __init__(
        self,
        kind: str,
        folder: Path,
        nodes: int = 3,
        *,
        has_own_controller: bool = False,
        controllers: int = 1,
        settings: dict[str, str] | None = None,
        others: dict[int, str] | None = None,
        network: Network | None = None,
        secured: SecuredNodes | None = None,
    ) -> None:
        self.secured = secured
        self.kind, self.folder = kind, folder
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        roles = ("broker",) if has_own_controller else ("broker", "controller")
        wanted = dict.fromkeys(range(1, nodes + 1), roles)
        if has_own_controller:
            wanted = {**dict.fromkeys(range(CONTROLLER_ID, CONTROLLER_ID + controllers), ("controller",)), **wanted}
        kinds = dict.fromkeys(wanted, kind) | (others or {})
        self.nodes = {each: KINDS[kinds[each]](folder / f"node-{each}", each, of) for each, of in wanted.items()}
        self._settings = SETTINGS | (settings or {})
        if network is not None:
            for node in self.nodes.values():
                node.host, node.prefix = network.host(node.node_id), network.prefix(node.node_id)
        for node in self.nodes.values():
            node.write_config(self.properties(node))
            if secured is not None:
                node.format_options = secured.format_options(node)
            # The newest version that both kinds know.
            node.release_version = MIXED_RELEASE if others else None

    def __repr__(self) -> str:
        return f"<Cluster {self.kind} {list(self.nodes.values())}>"

    def __getitem__(self, node_id: int) -> NodeProcess:
        return self.nodes[node_id]

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def brokers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.is_broker]

    @property
    def controllers(self) -> list[NodeProcess]:
        return [node for node in self.nodes.values() if node.is_controller]

    @property
    def bootstrap_servers(self) -> str:
        """Every broker's address, so that a client begins with whichever is up."""
        return ",".join(node.bootstrap_servers for node in self.brokers)

    def properties(self, node: NodeProcess) -> dict[str, str]:
        """Return the node's `server.properties`: the same for both kinds, except for ports and folders."""
        listeners = []
        found = {"process.roles": ",".join(node.roles), "node.id": str(node.node_id)}
        name = "PLAINTEXT" if self.secured is None else self.secured.protocol
        if node.is_broker:
            listeners.append(f"{name}://{node.bootstrap_servers}")
            found["advertised.listeners"] = listeners[0]
            found["inter.broker.listener.name"] = name
        if node.is_controller:
            listeners.append(f"CONTROLLER://{node.host}:{node.controller_port}")
        if node.host != "127.0.0.1":
            # In a network of its own; Apache Kafka does not know the setting.
            found["barnabas.insecure"] = "true"
        voters = [f"{each.node_id}@{each.host}:{each.controller_port}" for each in self.controllers]
        return found | {
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": ",".join(voters),
            "log.dirs": str(node.data_dir),
            **({} if self.secured is None else self.secured.settings(node)),
            **self._settings,
        }

    # All nodes

    def start(self) -> None:
        """Format and start every node that is down, and wait until each broker knows all."""
        down = [node for node in self.nodes.values() if not node.is_up]
        with ThreadPoolExecutor(len(self.nodes)) as at_once:
            list(at_once.map(lambda node: node.format(self.cluster_id), down))
        for node in down:
            node.launch()
        for node in down:
            node.await_ready()
        self.await_brokers()

    def close(self) -> None:
        """End every process, each by its own number."""
        for node in self.nodes.values():
            node.kill()

    def start_again(self, node: NodeProcess) -> None:
        """Start a node that is down; one that has lost its disk is formatted first, as its operator would."""
        node.format(self.cluster_id)
        node.start()

    def change_program(self, node_id: int, kind: type[NodeProcess]) -> NodeProcess:
        """Let another kind of node have the directory, the file and the ports of a node that is down, and return it."""
        assert not self[node_id].is_up, f"node {node_id} is up"
        changed = kind.__new__(kind)
        vars(changed).update(vars(self[node_id]))
        self.nodes[node_id] = changed
        return changed

    # The cluster's state
    def await_brokers(self) -> None:
        """Wait until every broker knows every broker that is up."""
        expected = {node.node_id for node in self.brokers if node.is_up}
        for node in self.brokers:
            if node.answers:
                wait_for(
                    f"node {node.node_id} knows brokers {sorted(expected)}",
                    partial(self._knows, node, expected),
                )

    def _knows(self, node: NodeProcess, brokers: set[int]) -> bool:
        return set(views.metadata(node.address).brokers) == brokers

    def any_address(self, *, but: int | None = None) -> views.Address:
        """Return the address of a broker that answers, and is not the one with this id."""
        for node in self.brokers:
            if node.answers and node.node_id != but:
                return node.address
        raise AssertionError("no broker answers")

    def partition(self, topic: str, index: int) -> PartitionMetadata:
        """Return a partition as some broker knows it; one without a leader has the leader -1."""
        return self.partitions(topic)[index]

    def partitions(self, topic: str) -> list[PartitionMetadata]:
        """Return the partitions of a topic as some broker knows them; none if that knows no such topic."""
        found = views.metadata(self.any_address(), topic).topics.get(topic)
        return found.partitions if found else []

    def leader_of(self, topic: str, index: int) -> NodeProcess:
        """Return the node that leads a partition, waiting until it has a leader that is up."""

        def find() -> NodeProcess | None:
            found = self.partition(topic, index).leader
            return self.nodes[found] if found >= 0 and self.nodes[found].is_up else None

        return wait_for(f"{topic}-{index} has a leader", find)

    def active_controller(self) -> NodeProcess:
        """Return the node that leads the quorum, waiting until there is one."""

        def find() -> NodeProcess | None:
            found = views.quorum(self.any_address())
            return self.nodes[found.leader_id] if found and self.nodes[found.leader_id].is_up else None

        return wait_for("the quorum has a leader", find)

    def await_in_sync(self, topics: Sequence[str]) -> None:
        """Wait until every broker sees all replicas of these topics in sync, and a leader of each partition."""
        for node in self.brokers:
            if node.answers:
                wait_for(
                    f"node {node.node_id} sees all replicas of {', '.join(topics)} in sync",
                    partial(self._are_in_sync, node, topics),
                )

    def _are_in_sync(self, node: NodeProcess, topics: Sequence[str]) -> bool:
        found = views.metadata(node.address, *topics).topics
        partitions = [each for topic in found.values() for each in topic.partitions]
        return set(found) == set(topics) and all(
            each.leader >= 0 and set(each.isr) == set(each.replicas) for each in partitions
        )

    def await_partition(self, topic: str, index: int, is_so: Callable[[PartitionMetadata], bool]) -> None:
        """Wait until every broker that answers sees a partition as it should be."""

        def all_see_it() -> bool:
            answering = [node.address for node in self.brokers if node.answers]
            found = [views.metadata(address, topic).topics.get(topic) for address in answering]
            return all(each is not None and is_so(each.partitions[index]) for each in found)

        wait_for(f"every broker sees {topic}-{index} as it should be", all_see_it)

    def all_topics(self) -> set[str]:
        """Return the names of all topics."""
        return views.all_topics(self.any_address())

    def repair(self) -> None:
        """Make the cluster as a scenario finds and leaves it: every node runs, and every replica of every topic is in sync."""
        for node in self.nodes.values():
            if node.is_paused:
                node.go_on()
        self.start()
        # In a tuple, which is true even if there are no topics.
        (topics,) = wait_for("the topics are listed", lambda: (self.all_topics(),))
        self.await_in_sync(sorted(topics))

    # The quorum

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
