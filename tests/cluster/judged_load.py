"""A producer's acknowledgements beside what the partitions have, when leaders have moved meanwhile."""

from __future__ import annotations

from pathlib import Path

from barnabas.client.admin import Admin, TopicMetadata
from tests.cluster.exchange_judge import Verdict, Written, judge_records
from tests.cluster.load import Load
from tests.cluster.records import read_partition
from tests.cluster.replicas import producers_of


def judged_load(addresses: str, load: Load, folder: Path) -> Verdict:
    """Judge what the producer was told by what a consumer reads; the leader's disk says in which epochs of the producer.

    Args:
        folder: of the cluster; the files of node N are below `node-N`.
    """
    with Admin(addresses) as admin:
        topic = admin.describe_topics([load.topic])[load.topic]
    assert isinstance(topic, TopicMetadata)
    told: dict[int, list[int]] = {index: [] for index in range(load.partitions)}
    for each in load.acknowledged:
        told[each.partition].append(each.number)
    there = {}
    for found in topic.partitions:
        paths = (folder / f"node-{found.leader}").rglob(f"{load.topic}-{found.partition}/*.log")
        producers = producers_of(b"".join(path.read_bytes() for path in sorted(paths)))
        records = read_partition(addresses, load.topic, found.partition)
        there[found.partition] = [Written(int(value), producers[offset]) for offset, value in records]
    return judge_records(told, there)
