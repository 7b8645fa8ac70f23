"""Clusters of both kinds for the benchmarks: default settings, but for copies of internal topics; what all nodes cost together."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apache_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.cluster import Cluster
from tests.cluster.failover_time import DEFAULTS
from tests.cluster.node_process import ApacheKafkaNode, NodeProcess
from tests.cluster.waiting import wait_for

from bench.process_cost import cpu_seconds, resident_megabytes

HEAP = "1g"
"""Of each Apache Kafka node, as in the rows of one node."""

CREATE_SECONDS = 300.0
NO_SETTINGS: Mapping[str, str] = {}
MIN_ISR = {"min.insync.replicas": "2"}
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Internal topics of a single node."""

BUCKET = re.compile(r'^barnabas_loop_lag_seconds_bucket\{le="([^"]+)"\} (\d+)', re.MULTILINE)


class BenchCluster(Cluster):
    """A cluster whose barnabas nodes also tell their metrics; `settings` are added to those of every node."""

    def __init__(self, kind: str, folder: Path, nodes: int = 3, settings: dict[str, str] | None = None) -> None:
        self.replicas = min(3, nodes)
        self.metrics_ports = {node_id: apache_kafka.free_port() for node_id in range(1, nodes + 1)}
        super().__init__(kind, folder, nodes, settings=DEFAULTS | (ALONE if nodes == 1 else {}) | (settings or {}))
        for node in self.nodes.values():
            if isinstance(node, ApacheKafkaNode):
                node.heap = HEAP

    def properties(self, node: NodeProcess) -> dict[str, str]:
        found = super().properties(node)
        if self.kind == "barnabas":
            found["barnabas.metrics.listen"] = f"127.0.0.1:{self.metrics_ports[node.node_id]}"
        return found

    @property
    def pids(self) -> list[int]:
        """The processes that are up."""
        return [node.process.pid for node in self.nodes.values() if node.process is not None and node.is_up]

    def cpu_seconds(self) -> float:
        """Return the CPU time of all nodes that are up, since each began."""
        return sum(map(cpu_seconds, self.pids))

    def megabytes(self) -> float:
        """Return the resident memory of all nodes that are up."""
        return sum(map(resident_megabytes, self.pids))

    def loop_lags(self, of: Collection[int] | None = None) -> dict[float, int]:
        """Return how often the loops of all nodes, or of some, were late, by the bound in seconds; {} for Apache Kafka."""
        found: dict[float, int] = {}
        for node in self.nodes.values() if self.kind == "barnabas" else ():
            if node.is_up and (of is None or node.node_id in of):
                address = f"http://127.0.0.1:{self.metrics_ports[node.node_id]}/metrics"
                with urllib.request.urlopen(address, timeout=30) as answer:
                    before = 0
                    for bound, count in BUCKET.findall(answer.read().decode()):
                        found[float(bound)] = found.get(float(bound), 0) + int(count) - before
                        before = int(count)
        return found


def longest_lag(before: dict[float, int], after: dict[float, int]) -> float:
    """Return the smallest bound, in seconds, that no lag between two readings was above."""
    return max((bound for bound, count in after.items() if count > before.get(bound, 0)), default=0.0)


class ClusterCost:
    """Around a piece of work: wall seconds, and the CPU seconds of all nodes."""

    def __init__(self, cluster: BenchCluster) -> None:
        self._cluster = cluster
        self.wall = self.cpu = 0.0

    def __enter__(self) -> ClusterCost:
        self._cpu, self._wall = self._cluster.cpu_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = self._cluster.cpu_seconds() - self._cpu


@dataclass
class RunningCluster:
    """A started cluster and what a scenario needs of it."""

    name: str
    cluster: BenchCluster
    admin: AdminClient = field(init=False)
    topics: int = 0

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})

    @contextmanager
    def topic(self, partitions: int = 6, settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[str]:
        """A topic of three replicas, of which two must have each write; of one on a single node.

        Args:
            settings: more of the topic's.
        """
        self.topics += 1
        name = f"bench-{self.topics}"
        create(self.admin, [name], partitions, self.cluster.replicas, settings)
        self.cluster.await_in_sync([name])
        try:
            yield name
        finally:
            self.admin.delete_topics([name])[name].result(60)


def create(
    admin: AdminClient, names: list[str], partitions: int, replicas: int = 3, settings: Mapping[str, str] = NO_SETTINGS
) -> None:
    """Create topics with as many partitions each, and wait for the controller's answer."""
    config = {**(MIN_ISR if replicas > 2 else {}), **settings}
    topics = [NewTopic(name, partitions, replicas, config=config) for name in names]
    for created in admin.create_topics(
        topics, operation_timeout=CREATE_SECONDS, request_timeout=CREATE_SECONDS
    ).values():
        created.result(CREATE_SECONDS)


def await_new_leaders(cluster: BenchCluster, topics: list[str], gone: int) -> None:
    """Wait until a node that is up sees another leader for every partition that the node `gone` led."""

    def none_is_left() -> bool:
        return all(each.leader not in (-1, gone) for topic in topics for each in cluster.partitions(topic))

    wait_for(f"node {gone} leads nothing", none_is_left)
