"""The partitions without a leader, for the log of the active controller.

A report compares the image with the report before it, so a partition that is without a leader for a moment in between (its broker
registers, and is unfenced right after) is not in it. A report has at most two lines, however many partitions are concerned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import nsmallest

from barnabas.leaderless import Leaderless, why_leaderless
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.metadata.partition_leaders import has_directory_online, is_active
from barnabas.metadata.topics_image import PartitionRegistration

NAMED_MAX = 5
"""How many partitions a line names; of the others it gives the number."""

Key = tuple[bytes, int]


class LeaderlessPartitions:
    """`report` says what has changed since the last report."""

    def __init__(self) -> None:
        self._reported: Mapping[bytes, tuple[int, ...]] = NOTHING

    def __repr__(self) -> str:
        return f"<LeaderlessPartitions reported={len(_keys(self._reported))}>"

    def report(self, image: MetadataImage) -> list[str]:
        """Return the lines to log: nothing while nothing has changed, or while no broker could lead anything."""
        now: Mapping[bytes, tuple[int, ...]] = image.topics.partition_index.get(WITHOUT_LEADER, NOTHING)
        before = self._reported
        if now is before or now == before or not any(map(is_active, image.cluster.brokers.values())):
            return []
        self._reported = now
        lost, found = _keys(now) - _keys(before), _keys(before) - _keys(now)
        lines = []
        if lost:
            count = f"{len(lost)} partitions have" if len(lost) > 1 else "A partition has"
            lines.append(f"{count} no leader: {_listed(image, lost, explain=True)}")
        # A topic that was deleted in between has no name any more.
        found = {key for key in found if key[0] in image.topics.by_id}
        if found:
            count = f"{len(found)} partitions have" if len(found) > 1 else "A partition has"
            lines.append(f"{count} a leader again: {_listed(image, found, explain=False)}")
        return lines


def why(image: MetadataImage, partition: PartitionRegistration) -> Leaderless:
    """Explain why a partition has no leader, from what the controller knows."""
    brokers = image.cluster.brokers
    offline = [
        replica
        for replica in partition.replicas
        if replica not in brokers
        or not is_active(brokers[replica])
        or not has_directory_online(brokers[replica], partition, replica)
    ]
    return why_leaderless(
        partition.replicas, offline, isr=partition.isr, elr=partition.elr, last_known=partition.last_known_elr
    )


def _keys(partitions: Mapping[bytes, tuple[int, ...]]) -> set[Key]:
    return {(topic_id, index) for topic_id, indexes in partitions.items() for index in indexes}


def _listed(image: MetadataImage, keys: Collection[Key], *, explain: bool) -> str:
    listed = []
    for name, index in nsmallest(NAMED_MAX, ((image.topics.by_id[topic_id].name, index) for topic_id, index in keys)):
        partition = image.topics.by_name[name].partitions[index]
        listed.append(f"{name}-{index} ({why(image, partition)})" if explain else f"{name}-{index}")
    if len(keys) > NAMED_MAX:
        listed.append(f"and {len(keys) - NAMED_MAX} more")
    return ", ".join(listed)
