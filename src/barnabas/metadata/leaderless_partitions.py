"""The partitions without a leader, for the log of the active controller.

A commit only notes what it changed; the report looks at what is left, so a partition that is without a leader for a moment (its
broker registers, and is unfenced right after) is not in it. A report has at most two lines, however many partitions are concerned.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.leaderless import Leaderless, why_leaderless
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_leaders import has_directory_online, is_active
from barnabas.metadata.topics_image import NO_LEADER, PartitionRegistration

NAMED_MAX = 5
"""How many partitions a line names; of the others it gives the number."""

Key = tuple[bytes, int]


class LeaderlessPartitions:
    """Listens to commits; `report` says what has changed since the last report."""

    def __init__(self) -> None:
        self._now: set[Key] = set()
        self._reported: set[Key] = set()

    def __repr__(self) -> str:
        return f"<LeaderlessPartitions now={len(self._now)} reported={len(self._reported)}>"

    def apply(self, delta: MetadataDelta) -> None:
        """Note the partitions that a commit changed."""
        if delta.topics is None:
            return
        for topic_id in delta.topics.deleted:
            self._now = {key for key in self._now if key[0] != topic_id}
        for topic_id, topic in delta.topics.changed.items():
            for index, partition in topic.partition_changes.items():
                (self._now.add if partition.leader == NO_LEADER else self._now.discard)((topic_id, index))

    def report(self, image: MetadataImage) -> list[str]:
        """Return the lines to log: nothing while nothing has changed, or while no broker could lead anything."""
        if self._now == self._reported or not any(map(is_active, image.cluster.brokers.values())):
            return []
        lost, found = self._now - self._reported, self._reported - self._now
        self._reported = set(self._now)
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


def _listed(image: MetadataImage, keys: Iterable[Key], *, explain: bool) -> str:
    named = sorted((image.topics.by_id[topic_id].name, index) for topic_id, index in keys)
    listed = []
    for name, index in named[:NAMED_MAX]:
        partition = image.topics.by_name[name].partitions[index]
        listed.append(f"{name}-{index} ({why(image, partition)})" if explain else f"{name}-{index}")
    if len(named) > NAMED_MAX:
        listed.append(f"and {len(named) - NAMED_MAX} more")
    return ", ".join(listed)
