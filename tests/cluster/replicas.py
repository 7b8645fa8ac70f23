"""The logs of all replicas of a partition, on the disks of their nodes: kafka-dump-log must print the same, and the bytes be the same.

A log is compared up to the high watermark. Scenarios call this when nothing is written any more and all replicas are in sync; the high
watermark is then the end of the log on every replica.
"""

from __future__ import annotations

import re

from barnabas.records.record_batch import iter_batches
from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.records import check_exactly_once
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess


def segment_bytes(cluster: Cluster, node_id: int, topic: str, partition: int) -> bytes:
    """Return all segments of a replica, one after the other."""
    folder = cluster[node_id].data_dir / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def producers(cluster: Cluster, topic: str, partition: int) -> dict[int, tuple[int, int]]:
    """Return id and epoch of the producer of each offset, as the leader's disk has them."""
    leader = next(each.leader for each in cluster.partitions(topic) if each.partition == partition)
    return producers_of(segment_bytes(cluster, leader, topic, partition))


def producers_of(batches: bytes) -> dict[int, tuple[int, int]]:
    """Return id and epoch of the producer of each offset of a log."""
    return {
        offset: (header.producer_id, header.producer_epoch)
        for _, header in iter_batches(batches)
        for offset in range(header.base_offset, header.last_offset + 1)
    }


def dumped(tools: ToolProcess, cluster: Cluster, node_id: int, topic: str, partition: int) -> list[str]:
    """Return what kafka-dump-log prints of a replica's batches and records, without the place of each in its file."""
    folder = cluster[node_id].data_dir / f"{topic}-{partition}"
    found: list[str] = []
    for path in sorted(folder.glob("*.log")):
        text = tools.run("dump-log", "--deep-iteration", "--print-data-log", "--files", str(path))
        assert text.startswith("exit 0"), text
        found += [re.sub(r"\bposition: \d+ ", "", line) for line in text.splitlines() if "ffset: " in line]
    return found


def check_bytes_identical(cluster: Cluster, topic: str) -> None:
    """All replicas of each partition are the same bytes."""
    for each in cluster.partitions(topic):

        def are_equal(partition: int = each.partition, replicas: list[int] = each.replicas) -> bool:
            return len({segment_bytes(cluster, replica, topic, partition) for replica in replicas}) == 1

        # An in-sync replica may still have to fetch the last batch, but it soon has it.
        wait_for(f"the replicas of {topic}-{each.partition} have the same bytes", are_equal, 30)


def check_replicas_identical(tools: ToolProcess, cluster: Cluster, topic: str) -> None:
    """All replicas of each partition are the same bytes, in which kafka-dump-log finds the same batches."""
    check_bytes_identical(cluster, topic)
    for each in cluster.partitions(topic):
        where = f"{topic}-{each.partition}"
        first, *others = (dumped(tools, cluster, replica, topic, each.partition) for replica in each.replicas)
        assert first, f"{where} is empty"
        assert all(other == first for other in others), f"kafka-dump-log prints different replicas of {where}"


def check_load(tools: ToolProcess, cluster: Cluster, load: Load) -> None:
    """All replicas of a load's topic come in sync, are identical, and have every acknowledged record exactly once."""
    cluster.await_in_sync([load.topic])
    check_exactly_once(cluster.bootstrap_servers, load)
    check_replicas_identical(tools, cluster, load.topic)
