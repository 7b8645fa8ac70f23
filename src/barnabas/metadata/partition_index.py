"""Which partitions concern a broker, without a look at every topic.

    key                    its partitions
    a broker's id          those that have the broker in their ISR or ELR; it leads no others
    WITHOUT_LEADER         those without a leader
    NOT_PREFERRED          those that the first of their replicas does not lead
    REASSIGNING            those with a reassignment in progress

- The index is a part of the image: a `TopicsDelta` makes the next one, and shares with the one before what did not change.
- It is a function of the partitions. Two images with equal partitions have equal indexes: no key and no topic is kept with nothing in it.
- Partitions of a topic are in the order of their ids; topics are in the order in which they came to a key.

Source: Kafka's `BrokersToIsrs`, and the other sets of its `ReplicationControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.metadata.topics_image import PartitionRegistration

WITHOUT_LEADER, NOT_PREFERRED, REASSIGNING = -1, -2, -3
NO_LEADER = -1

PartitionIndex = Mapping[int, Mapping[bytes, tuple[int, ...]]]
"""By key and topic id, the ids of the partitions."""


def _keys(partition: PartitionRegistration | None) -> set[int]:
    if partition is None:
        return set()
    keys = {*partition.isr, *partition.elr}
    if partition.leader == NO_LEADER:
        keys.add(WITHOUT_LEADER)
    if partition.leader != partition.replicas[0]:
        keys.add(NOT_PREFERRED)
    if partition.removing_replicas or partition.adding_replicas:
        keys.add(REASSIGNING)
    return keys


class IndexDelta:
    """Collects the changes of partitions, topic by topic; `apply` returns the next index."""

    def __init__(self, index: PartitionIndex) -> None:
        self._index = index
        self._changed: dict[int, dict[bytes, tuple[int, ...]]] = {}

    def __repr__(self) -> str:
        return f"<IndexDelta changed={sorted(self._changed)}>"

    def change(
        self, topic_id: bytes, changes: Iterable[tuple[int, PartitionRegistration | None, PartitionRegistration | None]]
    ) -> None:
        """Note the partitions of one topic that changed: their ids, what they were and what they are; None for nothing."""
        joined: dict[int, set[int]] = {}
        left: dict[int, set[int]] = {}
        for partition_id, before, after in changes:
            old, new = _keys(before), _keys(after)
            for key in old - new:
                left.setdefault(key, set()).add(partition_id)
            for key in new - old:
                joined.setdefault(key, set()).add(partition_id)
        for key in joined.keys() | left.keys():
            topics = self._changed.get(key)
            if topics is None:
                topics = self._changed[key] = dict(self._index.get(key, {}))
            kept = set(topics.get(topic_id, ())) - left.get(key, set()) | joined.get(key, set())
            if kept:
                topics[topic_id] = tuple(sorted(kept))
            else:
                del topics[topic_id]

    def apply(self) -> PartitionIndex:
        if not self._changed:
            return self._index
        return {key: topics for key, topics in {**self._index, **self._changed}.items() if topics}
