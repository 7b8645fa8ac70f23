"""The leader of the decisions is cut off from the other nodes, but not from a driver, and does not know that it is deposed.

Driver 1 decides batch 1 at the next leader, commits the first of two transactions, and dies. Driver 2 knows the deposed
one, which has only the decision of batch 0. Every row of the batch is there once. The network heals when driver 2 has
asked the deposed leader to write.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import pytest

import barnabas
from barnabas.client.cluster import TRANSACTION_COORDINATOR, Cluster
from barnabas.client.wire import BlockingConnection
from barnabas.spark.sink.decision_topic import TOPIC, create_decision_topic
from barnabas.spark.sink.task_producers import TaskProducers, open_cluster
from tests.spark.sink.sink_run import Fault, Killed, Query, Watched, committed

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

BATCHES = [[f"{batch}-{row}" for row in range(30)] for batch in range(2)]
PATIENCE = {"kafka.delivery.timeout.ms": "120000", "kafka.request.timeout.ms": "10000"}


class KilledInItsCommits(Watched):
    """Of the three EndTxn, the first is that of the decision, and the last is not sent."""

    def count(self, name: str) -> Fault | None:
        super().count(name)
        return Fault.KILLED_BEFORE if self.seen.count("EndTxn") == 3 else None


class Healing:
    """Makes connections; the first Produce that one node gets heals the network.

    Attributes:
        healed: whether it came so far.
    """

    def __init__(self, cluster: barnabas.Cluster, node: int) -> None:
        self.healed = False
        self._cluster = cluster
        self._port = int(cluster.address(node).rpartition(":")[2])

    def connect(self, host: str, port: int, **arguments: Any) -> BlockingConnection:
        if port == self._port:
            return _HealingConnection(self, host, port, **arguments)
        return BlockingConnection(host, port, **arguments)

    def heal(self) -> None:
        self.healed = True
        self._cluster.heal()


class _HealingConnection(BlockingConnection):
    def __init__(self, healing: Healing, host: str, port: int, **arguments: Any) -> None:
        self._healing = healing
        super().__init__(host, port, **arguments)

    def send(self, message: Any, version: int | None = None, *, highest: int | None = None) -> int:
        sent = super().send(message, version, highest=highest)
        if type(message).__name__ == "ProduceRequest" and not self._healing.healed:
            self._healing.heal()
        return sent


def coordinated_elsewhere(cluster: Cluster, node: int, ids: Callable[[], list[str]]) -> list[str]:
    """Return the first of some transactional ids whose coordinators are other nodes."""
    while True:
        found = ids()
        if node not in [cluster.coordinator(each, TRANSACTION_COORDINATOR) for each in found]:
            return found


def test_its_decisions_are_not_believed() -> None:
    with barnabas.Cluster(3) as nodes:
        with Cluster(nodes.bootstrap_servers) as cluster:
            create_decision_topic(cluster, 60_000)
            deposed = nodes.leader(TOPIC)
            (name,) = coordinated_elsewhere(cluster, deposed, lambda: [f"barnabas-sink/{uuid.uuid4().hex}"])
            workers = []
            for _ in range(4):
                found = coordinated_elsewhere(
                    cluster, deposed, lambda: [f"{name}/{uuid.uuid4().hex[:12]}/{number}" for number in range(2)]
                )
                workers.append(found[0].split("/")[2])
        others = [each for each in nodes.nodes if each != deposed]
        target = next(each for each in made_topics(nodes) if nodes.leader(each) != deposed)
        addresses = [nodes.address(each) for each in (*others, deposed)]

        def query(addresses: Collection[str], run: int, workers: list[str]) -> Query:
            ran = Query(
                ",".join(addresses),
                target,
                BATCHES,
                lambda values: [values[:15], values[15:]],
                name.split("/")[1],
                **PATIENCE,
            )
            for _ in range(run):
                ran.begin()
            ran.workers = [TaskProducers(worker=each) for each in workers]
            return ran

        first = query(addresses[:2], 1, workers[:2])
        first.run_batch(0)
        nodes.partition(deposed, others)
        with Cluster(addresses[0]) as cluster:
            cluster.forget()
            assert cluster.await_topics([TOPIC], lambda found: found.topics[TOPIC].partitions[0].leader in others)
        batch = first.batch(1)
        prepared = first.run_tasks(batch)
        with open_cluster(first.options, KilledInItsCommits().connect) as cluster, pytest.raises(Killed):
            first.driver(cluster, batch).commit(prepared)

        second = query([addresses[2], *addresses[:2]], 2, workers[2:])
        healing = Healing(nodes, deposed)
        second.run_batch(1, healing.connect)
        assert healing.healed
        assert committed(nodes.bootstrap_servers, target) == Counter(value for each in BATCHES for value in each)


def made_topics(nodes: barnabas.Cluster) -> Any:
    """Create one topic after the other, and yield their names."""
    for number in range(20):
        nodes.create_topic(f"written-{number}", 1)
        yield f"written-{number}"
