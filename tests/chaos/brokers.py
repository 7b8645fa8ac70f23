"""What dies of the kind `broker`: one broker that is alone, or a node of a cluster.

Of a cluster one node at a time is down, so that the others can go on. Every node leads some partitions, coordinates
some transactions and groups, and is one of the controllers: a node drawn at random is a leader that dies.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from apache_kafka import free_port

from barnabas.verify.faults import BrokerFailed, LocalBroker
from tests.chaos.plan import Fault
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import NeverCame

CLUSTER_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # A node that is back leads again what it led before: leaders move without a death, too.
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "10",
}


class Brokers(Protocol):
    """Where the pipeline's topics are."""

    bootstrap: str

    def start(self) -> None:
        """Start, and wait until clients are answered."""

    def check(self) -> None:
        """Raise BrokerFailed if a process ended by itself."""

    def die(self, fault: Fault) -> str:
        """Kill, wait as long as the fault says, start again; return what was done in words."""

    def stop(self) -> None:
        """End every process."""


class OneBroker:
    """A broker that is alone: while it is away, nobody answers."""

    def __init__(self, folder: Path) -> None:
        self.bootstrap = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "barnabas.main", "start", "--listen", self.bootstrap]
        command += ["--data-dir", str(folder / "broker")]
        self._broker = LocalBroker(command, self.bootstrap, folder / "broker.log")
        self.start, self.check, self.stop = self._broker.start, self._broker.check, self._broker.stop

    def __repr__(self) -> str:
        return f"<OneBroker {self.bootstrap}>"

    def die(self, fault: Fault) -> str:
        broker = self._broker
        return _die("broker", fault, broker.kill, broker.launch, broker.start, broker.start_seconds)


class SeveralNodes:
    """A cluster of nodes that are brokers and controllers, each with a copy of every partition."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self._cluster = Cluster("barnabas", folder / "nodes", nodes, settings=CLUSTER_SETTINGS)
        self.bootstrap = self._cluster.bootstrap_servers
        self._start_seconds = 1.0

    def __repr__(self) -> str:
        return f"<SeveralNodes {self._cluster}>"

    def start(self) -> None:
        self._cluster.start()

    def check(self) -> None:
        for node in self._cluster.brokers:
            if node.process is not None and not node.is_up:
                raise BrokerFailed(f"{node} ended by itself; {node.log} says why")

    def die(self, fault: Fault) -> str:
        nodes = self._cluster.brokers
        node = nodes[fault.choice % len(nodes)]
        led = self._leads(node.node_id)

        def start() -> None:
            began_s = time.monotonic()
            node.start()
            self._start_seconds = time.monotonic() - began_s

        what = f"node {node.node_id} ({led})"
        return _die(what, fault, node.kill, node.launch, start, self._start_seconds)

    def stop(self) -> None:
        self._cluster.close()

    def _leads(self, node_id: int) -> str:
        """Return in words what a node leads: for the line that the run prints."""
        led = 0
        for topic in ("orders", "payments", "inventory", "__transaction_state"):
            led += sum(each.leader == node_id for each in self._cluster.partitions(topic))
        is_controller = False
        with contextlib.suppress(NeverCame):
            is_controller = self._cluster.active_controller().node_id == node_id
        return f"leader of {led} partitions{', active controller' if is_controller else ''}"


def brokers(folder: Path, nodes: int) -> Brokers:
    """Return one broker that is alone, or so many nodes; all files are in the folder."""
    return OneBroker(folder) if nodes == 1 else SeveralNodes(folder, nodes)


def _die(
    what: str,
    fault: Fault,
    kill: Callable[[], object],
    launch: Callable[[], object],
    start: Callable[[], object],
    start_seconds: float,
) -> str:
    kill()
    time.sleep(fault.away_s)
    if fault.early:  # it must also recover from a recovery that was cut off
        launch()
        time.sleep(start_seconds * (fault.choice % 100) / 100)
        kill()
    start()
    again = ", and once more while it started" if fault.early else ""
    return f"{what} killed{again}, away for {fault.away_s:.1f} s"
