"""Which partitions of a share group have state with the share coordinator: the changes of that.

A partition stays initializing for the retry interval; then it is tried again, since the coordinator may have died between the note and
the call.

Source: Kafka class `GroupMetadataManager` (`subscribedTopicsChangeMap`, `combineInitMaps`, `initializeShareGroupState`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.protocol.messages import ShareGroupStatePartitionMetadataValue

PartitionIds = Mapping[bytes, frozenset[int]]
"""Topic id to partition indexes."""

UNKNOWN_NAME = "<UNKNOWN>"


class TopicPartitions(NamedTuple):
    """Partitions of one topic, and when they were noted (epoch milliseconds)."""

    name: str
    partitions: frozenset[int]
    timestamp_ms: int


class StatePartitions(NamedTuple):
    """Where the group's partitions are with the share coordinator, by topic id; of topics being deleted the name."""

    initializing: Mapping[bytes, TopicPartitions]
    initialized: Mapping[bytes, TopicPartitions]
    deleting: Mapping[bytes, str]

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> StatePartitions:
        """Read a record; `now_ms` becomes the time of each entry."""
        return cls(
            {
                bytes(topic.topic_id): TopicPartitions(topic.topic_name, frozenset(topic.partitions), now_ms)
                for topic in value.initializing_topics
            },
            {
                bytes(topic.topic_id): TopicPartitions(topic.topic_name, frozenset(topic.partitions), now_ms)
                for topic in value.initialized_topics
            },
            {bytes(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
        )


NO_STATE_PARTITIONS = StatePartitions({}, {}, {})


def with_initializing(
    state: StatePartitions, topics: Iterable[str], image: MetadataImage, now_ms: int, retry_interval_ms: int
) -> tuple[StatePartitions, PartitionIds]:
    """Note the partitions of subscribed topics that have no state; returns the new picture and the partitions."""
    wanted: dict[bytes, frozenset[int]] = {}
    noted: dict[bytes, TopicPartitions] = {}
    for name in topics:
        topic = image.topics.by_name.get(name)
        if topic is None:
            continue
        topic_id = bytes(topic.topic_id)
        begun = _partitions(state.initialized, topic_id)
        on_its_way = state.initializing.get(topic_id)
        if on_its_way is not None and now_ms - on_its_way.timestamp_ms < retry_interval_ms:
            begun |= on_its_way.partitions
        missing = frozenset(topic.partitions) - begun
        if missing:
            wanted[topic_id] = missing
            noted[topic_id] = TopicPartitions(name, missing, now_ms)
    return add_initializing(state, noted), wanted


def add_initializing(state: StatePartitions, noted: Mapping[bytes, TopicPartitions]) -> StatePartitions:
    """Note partitions; their topics are no longer deleting."""
    deleting = {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in noted}
    return StatePartitions(_combined(state.initializing, noted), state.initialized, deleting)


def with_initialized(
    state: StatePartitions, partitions: PartitionIds, image: MetadataImage, now_ms: int
) -> StatePartitions:
    """Note that partitions have state."""
    begun = {
        topic_id: TopicPartitions(
            image.topics.by_id[topic_id].name if topic_id in image.topics.by_id else UNKNOWN_NAME, indexes, now_ms
        )
        for topic_id, indexes in partitions.items()
    }
    return StatePartitions(
        without_initializing(state, partitions).initializing, _combined(state.initialized, begun), state.deleting
    )


def without_initializing(state: StatePartitions, partitions: PartitionIds) -> StatePartitions:
    """Partitions are not on their way any more."""
    left = {}
    for topic_id, topic in state.initializing.items():
        rest = topic.partitions - partitions.get(topic_id, frozenset())
        if rest:
            left[topic_id] = topic._replace(partitions=rest)
    return state._replace(initializing=left)


def _partitions(topics: Mapping[bytes, TopicPartitions], topic_id: bytes) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def _combined(
    first: Mapping[bytes, TopicPartitions], second: Mapping[bytes, TopicPartitions]
) -> dict[bytes, TopicPartitions]:
    """Both; where a topic is in both, name and time are the second's."""
    combined = dict(first)
    for topic_id, topic in second.items():
        combined[topic_id] = topic._replace(partitions=topic.partitions | _partitions(first, topic_id))
    return combined
