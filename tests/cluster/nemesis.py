"""Faults that a cluster must survive, one after the other; the seed decides which, to whom, and how long.

    killed                 SIGKILL to a broker or the active controller; it starts again after a while
    all killed             every process at once, as a power cut does; all start again
    rolled                 SIGTERM to each in turn, each back in sync before the next
    paused                 SIGSTOP for less than the session timeout
    paused long            SIGSTOP for more than that: it goes on as a leader and controller that others have replaced
    controller paused      the same, and it is the active controller
    isolated               nobody reaches it, clients neither
    cut from the others    clients still reach it
    deaf, mute             it receives nothing from the others, or they nothing from it: one direction only
    cut from one           two nodes receive nothing from each other, the third reaches both
    lossy                  some of the packets that are sent to it are lost
    slow                   what it sends takes long
    disk full              its file system has no room for a while; if the node has ended, it is then started again
    wiped                  it loses its disk and is formatted, as with a new disk
    older disk             it is killed, and its disk is replaced by a copy from some time before
    moved                  replicas leave a node and return

`double_faults` has more, in which two faults meet.

After each fault the run waits until all nodes are up and all replicas in sync. Three replicas with min.insync.replicas=2 promise to survive
one fault at a time.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.client.admin import Admin
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.reassignments import Stalled
from barnabas.protocol.errors import KafkaError
from tests.cluster import views
from tests.cluster.cluster import Cluster
from tests.cluster.network import Network, NoNetwork
from tests.cluster.node_process import NodeProcess
from tests.cluster.topics import REPLICAS
from tests.cluster.waiting import NeverCame, wait_for
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

DISK_BYTES = 768 << 20
ENDS_SECONDS = 20.0
"""How long a node without room may take to end."""
SESSION_SECONDS = 4.0
"""`broker.session.timeout.ms` of `cluster.SETTINGS`."""


class SmallDisk:
    """A file system of some megabytes for one node's data.

    Raises:
        NoNetwork: this machine does not allow to mount one.
    """

    def __init__(self, node: NodeProcess) -> None:
        self.path = node.folder / "disk"
        self.path.mkdir(parents=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NoNetwork(f"mount: {done.stderr.strip()}")
        node.data_dir = self.path / "data"

    @property
    def ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self) -> None:
        """Leave no room."""
        size = 0
        with self.ballast.open("wb") as file:
            # Ever smaller pieces: one that does not fit takes nothing at all, and the node writes meanwhile.
            for piece in (1 << 24, 1 << 20, 1 << 16, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), size, piece)
                        size += piece

    def empty(self) -> None:
        """Make room again."""
        self.ballast.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)


class Nemesis:
    """Does to a cluster what its seed says.

    Args:
        rng: decides.
        network: of the nodes; None leaves out what cuts it.
        disk: of one node; None leaves out the full disk.
        disk_node: the node that has it.
    """

    def __init__(
        self,
        cluster: Cluster,
        rng: random.Random,
        network: Network | None,
        disk: SmallDisk | None,
        disk_node: int,
    ) -> None:
        self.cluster, self.rng, self.network = cluster, rng, network
        self._disk, self._disk_node = disk, disk_node
        self.faults: dict[str, Callable[[], str]] = {
            "killed": self._killed,
            "all killed": self._all_killed,
            "rolled": self._rolled,
            "paused": self._paused,
            "paused long": self._paused_long,
            "controller paused": self._controller_paused,
            "wiped": self._wiped,
            "older disk": self._older_disk,
            "moved": self._moved,
        }
        if network is not None:
            self.faults |= {
                "isolated": self._isolated,
                "cut from the others": self._cut_off,
                "deaf": self._deaf,
                "mute": self._mute,
                "cut from one": self._cut_from_one,
                "lossy": self._lossy,
                "slow": self._slow,
            }
        if disk is not None:
            self.faults["disk full"] = self._disk_full

    def schedule(self) -> list[str]:
        """Return every fault once, in an order of the seed."""
        names = sorted(self.faults)
        self.rng.shuffle(names)
        return names

    def settle(self) -> None:
        """Wait until the cluster is whole; a node that has ended by itself is an error.

        Raises:
            AssertionError: a node has ended, or not all replicas came in sync; the message says where.
        """
        if self.network is not None:
            self.network.heal()
        for node in self.cluster.nodes.values():
            assert node.is_up, f"node {node.node_id} has ended by itself:\n{node.last_lines()}"
        self.cluster.repair()
        wait_for("all voters have the whole metadata log", self._are_voters_alike)

    def _are_voters_alike(self) -> bool:
        found = views.quorum(self.cluster.any_address())
        if found is None:
            return False
        ends = [each.log_end_offset for each in found.current_voters]
        return len(ends) == len(self.cluster.controllers) and max(ends) - min(ends) < 5

    # Faults

    def anyone(self) -> NodeProcess:
        """Return a node; often the active controller, whose loss costs most."""
        if self.rng.random() < 0.5:
            return self.cluster.active_controller()
        return self.rng.choice(list(self.cluster.nodes.values()))

    def hold(self, least: float, most: float) -> float:
        """Let a fault last, for a time that the seed decides; return the seconds."""
        seconds = self.rng.uniform(least, most)
        time.sleep(seconds)
        return seconds

    def _killed(self) -> str:
        node = self.anyone()
        node.kill()
        seconds = self.hold(0, 2 * SESSION_SECONDS)
        self.cluster.start_again(node)
        return f"node {node.node_id}, {seconds:.1f} s"

    def _all_killed(self) -> str:
        nodes = list(self.cluster.nodes.values())
        for node in nodes:
            assert node.process is not None
            node.process.kill()
        for node in nodes:
            node.kill()
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready()
        return "all nodes"

    def _rolled(self) -> str:
        nodes = list(self.cluster.nodes.values())
        self.rng.shuffle(nodes)
        for node in nodes:
            node.stop()
            self.cluster.start_again(node)
            self.settle()
        return ", ".join(str(node.node_id) for node in nodes)

    def _pause(self, node: NodeProcess, least: float, most: float) -> str:
        node.pause()
        seconds = self.hold(least, most)
        node.go_on()
        return f"node {node.node_id}, {seconds:.1f} s"

    def _paused(self) -> str:
        return self._pause(self.anyone(), 0.2, 0.8 * SESSION_SECONDS)

    def _paused_long(self) -> str:
        return self._pause(self.anyone(), 1.5 * SESSION_SECONDS, 4 * SESSION_SECONDS)

    def _controller_paused(self) -> str:
        return self._pause(self.cluster.active_controller(), 1.5 * SESSION_SECONDS, 4 * SESSION_SECONDS)

    def _cut(self, cut: Callable[[Network, int, list[int]], object]) -> str:
        assert self.network is not None
        node = self.anyone()
        others = [each for each in self.cluster.nodes if each != node.node_id]
        self.rng.shuffle(others)
        cut(self.network, node.node_id, others)
        seconds = self.hold(1.5 * SESSION_SECONDS, 4 * SESSION_SECONDS)
        self.network.heal()
        return f"node {node.node_id}, {seconds:.1f} s"

    def _isolated(self) -> str:
        return self._cut(lambda network, node, others: network.isolate(node))

    def _cut_off(self) -> str:
        return self._cut(lambda network, node, others: network.cut(node, *others))

    def _deaf(self) -> str:
        return self._cut(lambda network, node, others: network.deafen(node, *others))

    def _mute(self) -> str:
        def deafen_others(network: Network, node: int, others: list[int]) -> None:
            for each in others:
                network.deafen(each, node)

        return self._cut(deafen_others)

    def _cut_from_one(self) -> str:
        return self._cut(lambda network, node, others: network.cut(node, others[0]))

    def _lossy(self) -> str:
        return self._cut(lambda network, node, others: network.lose(node, self.rng.uniform(0.02, 0.15)))

    def _slow(self) -> str:
        return self._cut(lambda network, node, others: network.slow_down(node))

    def _disk_full(self) -> str:
        assert self._disk is not None
        node = self.cluster[self._disk_node]
        self._disk.fill()
        with contextlib.suppress(NeverCame):
            wait_for("the node without room ends", lambda: not node.is_up, ENDS_SECONDS)
        self._disk.empty()
        if node.is_up:
            return f"node {node.node_id} went on"
        self.cluster.start_again(node)
        return f"node {node.node_id} ended and started again"

    def _wiped(self) -> str:
        node = self.anyone()
        node.stop() if self.rng.random() < 0.5 else node.kill()
        node.wipe()
        self.hold(0, SESSION_SECONDS)
        self.cluster.start_again(node)
        return f"node {node.node_id}"

    def _older_disk(self) -> str:
        node = self.anyone()
        copy = node.data_dir.with_name("older")
        node.stop() if self.rng.random() < 0.5 else node.kill()
        shutil.copytree(node.data_dir, copy)
        self.cluster.start_again(node)
        self.settle()
        seconds = self.hold(1, 2 * SESSION_SECONDS)
        node.kill()
        node.wipe()
        copy.rename(node.data_dir)
        self.cluster.start_again(node)
        return f"node {node.node_id}, {seconds:.1f} s older"

    def _moved(self) -> str:
        ids = sorted(self.cluster.nodes)
        leaves = self.rng.choice(ids)
        with Admin(self.cluster.bootstrap_servers, security=way_in.security) as admin:
            partitions = [
                TopicPartition(topic, index)
                for topic in sorted(self.cluster.all_topics())
                for index in range(len(self.cluster.partitions(topic)))
            ]
            stay = [each for each in ids if each != leaves]
            for step in (lambda: self.rng.sample(stay, 2), lambda: self.rng.sample(ids, REPLICAS)):
                found = admin.reassign({each: step() for each in partitions}, at_once=20)
                failed = {each: error for each, error in found.items() if error is not None}
                gone = {each for each in failed if each.topic not in self.cluster.all_topics()}
                assert not set(failed) - gone, f"replicas are not moved: {failed}"
                admin.elect_preferred_leaders(partitions)
        return f"away from node {leaves} and back"


class Mover(Worker):
    """A thread that every few seconds changes the order of replicas and elects other leaders, whatever else happens.

    Args:
        topics: whose partitions are moved.

    Attributes:
        moved: how many partitions got another order.
    """

    patience_seconds = 60.0

    def __init__(self, cluster: Cluster, rng: random.Random, topics: list[str], every_s: float) -> None:
        super().__init__()
        self.moved = 0
        self._cluster, self._rng, self._topics, self._every_s = cluster, rng, topics, every_s

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s * self._rng.uniform(0.5, 1.5)):
            ids = sorted(self._cluster.nodes)
            # A fault may be going on: then this fails, and the next one may succeed.
            with (
                contextlib.suppress(KafkaError, OSError, AssertionError, Stalled),
                Admin(self._cluster.bootstrap_servers, timeout_ms=5000, security=way_in.security) as admin,
            ):
                partitions = [
                    TopicPartition(topic, index)
                    for topic in self._topics
                    for index in range(len(self._cluster.partitions(topic)))
                ]
                chosen = self._rng.choice(partitions)
                order = {chosen: self._rng.sample(ids, REPLICAS)}
                self.moved += sum(error is None for error in admin.reassign(order, at_once=1).values())
                admin.elect_preferred_leaders([chosen])
