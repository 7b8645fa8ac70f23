"""The partitions that concern a broker, found without a look at every topic.

    key                    its partitions
    a broker's id          with the broker in their ISR or ELR; it leads no others
    WITHOUT_LEADER         without a leader
    NOT_PREFERRED          led by another than their first replica
    REASSIGNING            with a reassignment in progress

- The index is a part of the image: a `TopicsDelta` makes the next index, which shares unchanged parts with the previous one.
- It is a function of the partitions: two images with equal partitions have equal indexes. No empty key or topic is kept.
- Partitions of a topic are in the order of their ids; topics are in the order in which they came to a key.

Source: Kafka's `BrokersToIsrs`, and the other sets of its `ReplicationControlManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.partition_registration import NO_LEADER, PartitionRegistration

WITHOUT_LEADER, NOT_PREFERRED, REASSIGNING = -1, -2, -3
NO_IDS: frozenset[int] = frozenset()

PartitionIndex = Mapping[int, dict[bytes, tuple[int, ...]]]
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
    """Collects the changes of partitions; `apply` makes the next index of them."""

    def __init__(self, index: PartitionIndex) -> None:
        self._index = index
        # By key and topic id: the ids of partitions that have come to the key, and of partitions that have left it.
        self._joined: dict[int, dict[bytes, set[int]]] = {}
        self._left: dict[int, dict[bytes, set[int]]] = {}

    def __repr__(self) -> str:
        return f"<IndexDelta changed={sorted(self._joined.keys() | self._left.keys())}>"

    def change(
        self,
        topic_id: bytes,
        partition_id: int,
        before: PartitionRegistration | None,
        after: PartitionRegistration | None,
    ) -> None:
        """Note the old and the new state of a partition, None where it does not exist; call it once for each partition."""
        old, new = _keys(before), _keys(after)
        if old == new:
            return
        for noted, keys in ((self._left, old - new if new else old), (self._joined, new - old if old else new)):
            for key in keys:
                topics = noted.get(key)
                if topics is None:
                    topics = noted[key] = {}
                if topic_id in topics:
                    topics[topic_id].add(partition_id)
                else:
                    topics[topic_id] = {partition_id}

    def apply(self) -> PartitionIndex:
        """Make the next index."""
        changed = self._joined.keys() | self._left.keys()
        if not changed:
            return self._index
        index = dict(self._index)
        for key in changed:
            joined, left = self._joined.get(key, {}), self._left.get(key, {})
            # `dict(topics)` takes twice as long if a topic has ever left: 7 ms instead of 3 for 100,000.
            topics = index[key].copy() if key in index else {}
            for topic_id in joined | left:
                before = topics.get(topic_id, ())
                kept = set(before) - left.get(topic_id, NO_IDS) | joined.get(topic_id, NO_IDS)
                if kept:
                    topics[topic_id] = tuple(sorted(kept))
                else:
                    del topics[topic_id]
            if topics:
                index[key] = topics
            else:
                index.pop(key, None)
        return index
