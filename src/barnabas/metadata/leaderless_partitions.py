"""The partitions without a leader, for the log of the active controller.

A report compares the image with the report before it. So it leaves out a partition that had no leader for a moment in between, because
its broker registered and was unfenced right after. A report has at most two lines, however many partitions it is about. It takes one
turn of the loop, which looks at each topic that has changed, and at few partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.metadata.partition_leaders import has_directory_online, is_active
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.words.leaderless import Leaderless, why_leaderless

NAMED_MAX = 5
"""How many partitions a line names; it only counts the others."""

Partitions = Mapping[bytes, tuple[int, ...]]
"""Topic id to sorted partition indexes; a topic without any is left out."""


class LeaderlessPartitions:
    """`report` says what has changed since the last report."""

    def __init__(self) -> None:
        self._reported: Partitions = NOTHING

    def __repr__(self) -> str:
        return f"<LeaderlessPartitions reported={_count(self._reported)}>"

    def report(self, image: MetadataImage) -> list[str]:
        """Return the lines to log: nothing while nothing has changed, or while no broker could lead anything."""
        now: Partitions = image.topics.partition_index.get(WITHOUT_LEADER, NOTHING)
        before = self._reported
        if now is before or now == before or not any(map(is_active, image.cluster.brokers.values())):
            return []
        self._reported = now
        lost, found = _lacking(now, before), _lacking(before, now)
        # A topic that was deleted in between has no name now.
        found = {topic_id: indexes for topic_id, indexes in found.items() if topic_id in image.topics.by_id}
        lines = []
        if lost:
            lines.append(f"{_have(lost)} no leader: {_listed(image, lost, explain=True)}")
        if found:
            lines.append(f"{_have(found)} a leader again: {_listed(image, found, explain=False)}")
        return lines


def why(image: MetadataImage, partition: PartitionRegistration) -> Leaderless:
    """Explain why a partition has no leader, from the controller's state."""
    brokers = image.cluster.brokers
    offline = [
        replica
        for replica in partition.replicas
        if replica not in brokers
        or not is_active(brokers[replica])
        or not has_directory_online(brokers[replica], partition, replica)
    ]
    return why_leaderless(
        partition.replicas,
        offline,
        isr=partition.isr,
        elr=partition.elr,
        last_known=partition.last_known_elr,
        serving=[replica for replica in offline if replica in brokers and is_active(brokers[replica])],
    )


def _count(partitions: Partitions) -> int:
    return sum(map(len, partitions.values()))


def _lacking(partitions: Partitions, others: Partitions) -> Partitions:
    """Return those of the partitions that the others lack."""
    lacking = {}
    for topic_id, indexes in partitions.items():
        there = others.get(topic_id)
        if there is not None:
            if there is indexes:
                continue
            indexes = tuple(sorted({*indexes}.difference(there)))
        if indexes:
            lacking[topic_id] = indexes
    return lacking


def _have(partitions: Partitions) -> str:
    count = _count(partitions)
    return f"{count} partitions have" if count > 1 else "A partition has"


def _listed(image: MetadataImage, partitions: Partitions, *, explain: bool) -> str:
    listed: list[str] = []
    # Each topic here has at least one such partition, so the first topics have the first partitions.
    for topic in nsmallest(NAMED_MAX, (image.topics.by_id[topic_id] for topic_id in partitions)):
        for index in partitions[topic.topic_id][: NAMED_MAX - len(listed)]:
            reason = f" ({why(image, topic.partitions[index])})" if explain else ""
            listed.append(f"{topic.name}-{index}{reason}")
    more = _count(partitions) - len(listed)
    return ", ".join([*listed, f"and {more} more"] if more else listed)
