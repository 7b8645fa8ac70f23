"""What is measured on clusters of three nodes, each broker and controller: replication factor 3, min.insync.replicas=2, acks=all.

The rows of the first kind run on two clusters that are up at once, in turn. The others start clusters of their own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import views
from tests.cluster.waiting import wait_for

from bench.acks_rows import ACKS, SYNCED, acks_losses, acks_rates
from bench.clusters import (
    BenchCluster,
    ClusterCost,
    RunningCluster,
    await_new_leaders,
    create,
    longest_lag,
)
from bench.report import OURS, THEIR_CLUSTER, THEIRS, Results, print_table
from bench.scenarios import Figures, librdkafka, librdkafka_figures

SIDES = (OURS, THEIR_CLUSTER)
KINDS = {OURS: OURS, THEIR_CLUSTER: THEIRS}
PARTITIONS_PER_TOPIC = 250
TOPICS_PER_REQUEST = 20
IDLE_SECONDS = 20.0
WARM_RECORDS = 1_000_000


@dataclass(frozen=True)
class ClusterRow:
    """A row of the table: a name and how to measure it, on clusters that are up or on one of its own.

    Attributes:
        sides: that are measured; a row of many nodes has only ours.
    """

    name: str
    run: Callable[[RunningCluster], Figures] | None = None
    run_alone: Callable[[str], Figures] | None = None
    sides: tuple[str, ...] = SIDES


@contextmanager
def started(name: str, nodes: int = 3) -> Iterator[RunningCluster]:
    """A cluster that is up; its files are gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        BenchCluster(KINDS[name], Path(folder), nodes) as cluster,
    ):
        yield RunningCluster(name, cluster)


def run_cluster_rows(rows: list[ClusterRow], runs: int, results: Results) -> None:
    """Measure the sides in turn, and print each row's table when it is done."""
    shared = [row for row in rows if row.run]
    if shared:
        with started(OURS) as ours, started(THEIR_CLUSTER) as theirs:
            for running in (ours, theirs):
                warm_up(running)
            for row in shared:
                for _ in range(runs):
                    for running in (each for each in (ours, theirs) if each.name in row.sides):
                        assert row.run is not None
                        results.add(row.name, running.name, row.run(running))
                print_table(results, row.name)
    for row in rows:
        if row.run_alone is not None:
            for _ in range(runs):
                for name in row.sides:
                    results.add(row.name, name, row.run_alone(name))
            print_table(results, row.name)


def warm_up(running: RunningCluster) -> None:
    """The JVM compiles what it has run often; both get the same."""
    with running.topic() as topic:
        address = running.cluster.bootstrap_servers
        for size in (1000, 100):
            librdkafka("produce", address, topic, WARM_RECORDS, size, 16_384, "all")
        librdkafka("consume", address, topic, 2 * WARM_RECORDS)


# --- on clusters that are up -----------------------------------------------------------------------------------------


def produce(running: RunningCluster, size: int, batch: int, megabytes: int) -> Figures:
    count = megabytes * 1_000_000 // size
    with running.topic() as topic:
        with ClusterCost(running.cluster) as cost:
            seconds = librdkafka("produce", running.cluster.bootstrap_servers, topic, count, size, batch, "all")
        memory = running.cluster.megabytes()
    gigabytes = count * size / 1e9
    return {
        "MB/s": gigabytes * 1000 / seconds,
        "three nodes' CPU s/GB": cost.cpu / gigabytes,
        "three nodes' MB": memory,
    }


def consume(running: RunningCluster, size: int, megabytes: int, reads: int = 3) -> Figures:
    """The median of some reads, as on one node."""
    count = megabytes * 1_000_000 // size
    found: list[tuple[float, float]] = []
    with running.topic() as topic:
        librdkafka("produce", running.cluster.bootstrap_servers, topic, count, size, 131_072, "all")
        for _ in range(reads):
            with ClusterCost(running.cluster) as cost:
                seconds = librdkafka("consume", running.cluster.bootstrap_servers, topic, count)
            found.append((seconds, cost.cpu))
    seconds, cpu = sorted(found)[reads // 2]
    gigabytes = count * size / 1e9
    return {"MB/s": gigabytes * 1000 / seconds, "three nodes' CPU s/GB": cpu / gigabytes}


def latency(running: RunningCluster, rate: int, seconds: float) -> Figures:
    """Single records at a modest rate, each sent at once and acknowledged by all in-sync replicas."""
    count = int(rate * seconds)
    with running.topic() as topic, ClusterCost(running.cluster) as cost:
        found = librdkafka_figures("pace", running.cluster.bootstrap_servers, topic, count, 1000, rate)
    return {
        "p50 µs": found["p50"] * 1e6,
        "p99 µs": found["p99"] * 1e6,
        "three nodes' CPU µs a record": cost.cpu / count * 1e6,
    }


# --- on clusters of their own ----------------------------------------------------------------------------------------


def growth(name: str, partitions: int, nodes: int = 3) -> Figures:
    """Create partitions of three replicas, write to each, look at the idle cluster, then kill a node.

    The killed node is not the active controller. "failover" ends when a survivor sees no partition led by it.
    """
    with started(name, nodes) as running:
        cluster = running.cluster
        time.sleep(2)
        before, lags = cluster.megabytes(), cluster.loop_lags()
        topics = []
        figures: Figures = {}
        if partitions:
            each = min(partitions, PARTITIONS_PER_TOPIC)
            topics = [f"growth-{number}" for number in range(partitions // each)]
            with ClusterCost(cluster) as created:
                create(running.admin, topics, each)
                cluster.await_in_sync(topics)
                known = time.perf_counter()
                librdkafka("touch", cluster.bootstrap_servers, ",".join(topics), each)
                written = time.perf_counter()
            figures |= {
                "created, known to all s": created.wall - (written - known),
                "a record in each s": created.wall,
                "a record in each: CPU s": created.cpu,
                "added MB": max(cluster.megabytes() - before, 0.1),
            }
        time.sleep(5)
        with ClusterCost(cluster) as idle:
            time.sleep(IDLE_SECONDS)
        figures |= {"idle CPU s a minute": idle.cpu / idle.wall * 60, "MB": cluster.megabytes()}
        if name == OURS:
            figures["no turn longer than s"] = longest_lag(lags, cluster.loop_lags())
        if topics:
            figures |= failover(cluster, topics)
        return figures


def failover(cluster: BenchCluster, topics: list[str]) -> Figures:
    """Kill a node that is not the active controller, and wait until others lead all its partitions; then start it again."""
    controller = cluster.active_controller().node_id
    victim = next(node for node in cluster.brokers if node.node_id != controller)
    survivors = [node.node_id for node in cluster.brokers if node is not victim]
    lags = cluster.loop_lags(survivors)
    began = time.perf_counter()
    victim.kill()
    await_new_leaders(cluster, topics, victim.node_id)
    moved = time.perf_counter() - began
    figures = {"failover s": moved}
    if lags:
        figures["failover: no turn longer than s"] = longest_lag(lags, cluster.loop_lags(survivors))
    began = time.perf_counter()
    victim.start()
    wait_for("all are in sync", lambda: cluster.await_in_sync(topics) or True)
    return figures | {"started again and in sync s": time.perf_counter() - began}


def metadata(name: str, partitions: int = 100_000) -> Figures:
    """Create partitions of one replica that nobody writes to, look at the idle cluster, then kill the active controller."""
    topics = [f"metadata-{number}" for number in range(partitions // PARTITIONS_PER_TOPIC)]
    with started(name) as running:
        cluster = running.cluster
        time.sleep(2)
        before, lags = cluster.megabytes(), cluster.loop_lags()
        with ClusterCost(cluster) as created:
            for first in range(0, len(topics), TOPICS_PER_REQUEST):
                create(running.admin, topics[first : first + TOPICS_PER_REQUEST], PARTITIONS_PER_TOPIC, replicas=1)
            # The last of all: a node that knows it has the others.
            cluster.await_in_sync(topics[-1:])
        time.sleep(5)
        with ClusterCost(cluster) as idle:
            time.sleep(IDLE_SECONDS)
        figures = {
            "created, known to all s": created.wall,
            "created: CPU s": created.cpu,
            "added MB": cluster.megabytes() - before,
            "MB": cluster.megabytes(),
            "idle CPU s a minute": idle.cpu / idle.wall * 60,
            "no turn longer than s": longest_lag(lags, cluster.loop_lags()),
        }
        return figures | lose_controller(cluster, topics[-1])


def lose_controller(cluster: BenchCluster, topic: str) -> Figures:
    """Kill the active controller, and wait until another has taken its partitions from it; then start it again.

    Args:
        topic: the last one that was created.
    """
    victim = cluster.active_controller()
    survivors = [node for node in cluster.brokers if node is not victim]
    partitions = views.metadata(victim.address, topic).topics[topic].partitions
    lost = max(index for index, partition in enumerate(partitions) if partition.leader == victim.node_id)
    lags = cluster.loop_lags([node.node_id for node in survivors])
    began = time.perf_counter()
    victim.kill()
    cluster.active_controller()
    elected = time.perf_counter()
    cluster.await_partition(topic, lost, lambda partition: partition.leader == -1)
    fenced = time.perf_counter()
    figures = {
        "controller lost: another leads s": elected - began,
        "its partitions have no leader s": fenced - began,
        "controller lost: no turn longer than s": longest_lag(
            lags, cluster.loop_lags([node.node_id for node in survivors])
        ),
    }
    began = time.perf_counter()
    victim.start()
    cluster.await_partition(topic, lost, lambda partition: partition.leader == victim.node_id)
    return figures | {"started again, leads again s": time.perf_counter() - began}


def cluster_rows(megabytes: int, seconds: float) -> list[ClusterRow]:
    """Return the rows; the names begin with `cluster`."""
    small = megabytes // 5
    rows = [
        ClusterRow(f"cluster: produce {size} B, {batch // 1024} KB batches", lambda r, s=size, b=batch, m=amount: produce(r, s, b, m))  # type: ignore[misc]
        for size, amount in ((100, small), (1000, megabytes))
        for batch in (16_384, 131_072)
    ]  # fmt: skip
    rows += [
        ClusterRow(f"cluster: consume {size} B", lambda r, s=size, m=amount: consume(r, s, m))  # type: ignore[misc]
        for size, amount in ((100, small), (1000, megabytes))
    ]
    rows.append(ClusterRow("cluster: latency of 200 records a second", lambda r: latency(r, 200, 2 * seconds)))
    rows += [
        ClusterRow(f"cluster: acks={acks}", lambda r, a=acks: acks_rates(r, a, small, seconds))  # type: ignore[misc]
        for acks in ACKS
    ]
    rows += [
        ClusterRow(f"cluster: acks=all, {name}", lambda r, s=settings: acks_rates(r, "all", small, seconds, s), sides=sides)  # type: ignore[misc]
        for name, (settings, sides) in SYNCED.items()
    ]  # fmt: skip
    # After the rates: each run kills a node, and a node that was started again runs cold code.
    rows += [
        ClusterRow(f"cluster: acks={acks}, a leader killed", lambda r, a=acks: acks_losses(r, a))  # type: ignore[misc]
        for acks in ACKS
    ]
    rows += [
        ClusterRow(f"cluster: {count} partitions", run_alone=lambda name, n=count: growth(name, n))  # type: ignore[misc]
        for count in (0, 1000, 4000)
    ]
    # Apache Kafka's brokers create the files of each replica at once: 100,000 directories.
    rows.append(ClusterRow("cluster: metadata of 100000 partitions", run_alone=metadata, sides=(OURS,)))
    rows += [
        ClusterRow(f"cluster of {nodes} nodes: 1000 partitions", run_alone=lambda name, n=nodes: growth(name, 1000, n), sides=(OURS,))  # type: ignore[misc]
        for nodes in (5, 7)
    ]  # fmt: skip
    return rows
