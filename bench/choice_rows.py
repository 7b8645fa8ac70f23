"""What `bench.choices` measures on a cluster that is up: transactions, one partition, partitions and brokers, small records.

Each function takes a running cluster and returns named figures. A topic has three replicas, or one on a single node.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

from bench.clusters import ClusterCost, RunningCluster
from bench.scenarios import Figures

COMMIT_EVERY = {"none": 0.0, "of 1 s": 1.0, "of 100 ms": 0.1}
RATE = 200
PARTITION_COUNTS = (1, 2, 4, 8, 16, 32, 64)
SMALL_ROWS = (
    ("one producer, acks=1", 1, "1"),
    ("one producer, acks=all", 1, "all"),
    ("three producers, acks=1", 3, "1"),
)


def load(what: str, *args: object) -> Figures:
    """Run a load in a process of its own; return what it prints."""
    command = [sys.executable, "-m", "bench.choice_load", what, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def warm_up(running: RunningCluster, megabytes: int) -> None:
    """The JVM compiles what it has run often; both kinds get the same."""
    servers = running.cluster.bootstrap_servers
    with running.topic() as topic:
        load("write", servers, topic, 6, megabytes * 1000, 1000, "all")
        load("read", servers, topic, 6, megabytes * 1000)
        load("commit", servers, topic, 6, 2, 1000, 0.05)


def transactions(running: RunningCluster, kind: str, seconds: float) -> Figures:
    """A producer as fast as it goes; then 200 records a second, from when each is due until a read_committed reader has it."""
    servers, every = running.cluster.bootstrap_servers, COMMIT_EVERY[kind]
    with running.topic() as topic, ClusterCost(running.cluster) as cost:
        found = load("commit", servers, topic, 6, seconds, 1000, every)
    with running.topic() as topic:
        latency = load("follow", servers, topic, 6, 2 * seconds, RATE, every)
    return {
        "MB/s": found["records"] / 1000 / found["seconds"],
        "CPU s/GB": cost.cpu / found["records"] * 1e6,
        "p50 ms": latency["p50"] * 1000,
        "p99 ms": latency["p99"] * 1000,
    }


def one_partition(running: RunningCluster, size: int, megabytes: int) -> Figures:
    """Write with acks=all to one partition, read it, and count the records that come out of order."""
    servers, count = running.cluster.bootstrap_servers, megabytes * 1_000_000 // size
    with running.topic(1) as topic:
        written = load("write", servers, topic, 1, count, size, "all")
        got = load("read", servers, topic, 1, count)
    return {
        "produce MB/s": megabytes / written["seconds"],
        "consume MB/s": megabytes / got["seconds"],
        "records": count,
        "out of order": got["out of order"],
    }


def scaling(running: RunningCluster, partitions: int, megabytes: int) -> Figures:
    """Write records of 1,000 bytes with acks=all, a batch of 128 KB for each partition in turn."""
    with running.topic(partitions) as topic, ClusterCost(running.cluster) as cost:
        servers = running.cluster.bootstrap_servers
        seconds = load("write", servers, topic, partitions, megabytes * 1000, 1000, "all")["seconds"]
    return {"MB/s": megabytes / seconds, "CPU s/GB": cost.cpu / megabytes * 1000}


def small_records(running: RunningCluster, producers: int, acks: str, count: int) -> Figures:
    """Write records of 100 bytes into six partitions; each producer writes its share, all at the same time."""
    servers, share = running.cluster.bootstrap_servers, count // producers
    with running.topic() as topic:
        began = time.perf_counter()
        with ThreadPoolExecutor(producers) as together, ClusterCost(running.cluster) as cost:
            arguments = ("write", servers, topic, 6, share, 100, acks)
            found = list(together.map(lambda each: load(*each), repeat(arguments, producers)))
        wall = time.perf_counter() - began
        figures = {
            # Producers that start together end nearly together: the slowest says when all is written.
            "records/s": share * producers / max(each["seconds"] for each in found),
            "broker CPU µs a record": cost.cpu / (share * producers) * 1e6,
            "wall s": wall,
        }
        if producers == 1:
            figures["read records/s"] = share / load("read", servers, topic, 6, share)["seconds"]
    return figures
