"""Topics and their partitions as the metadata log describes them.

`TopicsImage` is the state after some record; `TopicsDelta` collects what records since then changed and yields the next
image. An image is never altered: what did not change is shared between two images, so a commit that touches one topic
costs one copy of the table of topics and one of that topic's partitions.

- `by_name` and `by_id` hold the same `TopicImage` objects; `partition_index` finds the partitions that concern a broker.
- Names become paths: a TopicRecord whose name is not valid is an error, as a record of an unknown type is.
- Deleting a topic and creating one of the same name within one delta leaves two entries: the id in `deleted`, and the
  new id in `changed`.

Sources: Kafka's `TopicsImage`, `TopicsDelta`; TopicRecord, RemoveTopicRecord, ClearElrRecord.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.nothing import NOTHING
from barnabas.metadata.partition_index import IndexDelta, PartitionIndex
from barnabas.metadata.partition_registration import LEADER_RECOVERING, PartitionRegistration
from barnabas.protocol import messages, topic_names
from barnabas.protocol.primitives import uuid_to_str


class TopicImage(NamedTuple):
    """One topic; `partitions` is in index order."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionRegistration]

    def __repr__(self) -> str:
        return f"<TopicImage {self.name} id={uuid_to_str(self.topic_id)} partitions={len(self.partitions)}>"


class TopicsImage(NamedTuple):
    by_name: Mapping[str, TopicImage] = NOTHING
    by_id: Mapping[bytes, TopicImage] = NOTHING
    partition_index: PartitionIndex = NOTHING

    @classmethod
    def of(cls, topics: Iterable[TopicImage]) -> TopicsImage:
        """Return the image of these topics."""
        delta = TopicsDelta(cls())
        for topic in topics:
            created = delta.changed[topic.topic_id] = TopicDelta(topic._replace(partitions={}), is_new=True)
            created.partition_changes.update(topic.partitions)
        return delta.apply()

    def partition(self, topic: str, index: int) -> PartitionRegistration | None:
        found = self.by_name.get(topic)
        return None if found is None else found.partitions.get(index)

    def name_of(self, topic_id: bytes) -> str | None:
        found = self.by_id.get(topic_id)
        return None if found is None else found.name

    def records(self) -> Iterator[messages.TopicRecord | messages.PartitionRecord]:
        """Yield the records of a snapshot, in the order of names and partitions."""
        for name in sorted(self.by_name):
            topic = self.by_name[name]
            yield messages.TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for index, registration in topic.partitions.items():
                yield registration.to_record(topic.topic_id, index)


class TopicDelta:
    """The changes of one topic. `image` is the topic before, or an empty one for a new topic."""

    def __init__(self, image: TopicImage, *, is_new: bool) -> None:
        self.image = image
        self.is_new = is_new
        self.partition_changes: dict[int, PartitionRegistration] = {}

    @property
    def name(self) -> str:
        return self.image.name

    @property
    def topic_id(self) -> bytes:
        return self.image.topic_id

    def current(self, index: int) -> PartitionRegistration | None:
        return self.partition_changes.get(index) or self.image.partitions.get(index)

    def apply(self) -> TopicImage:
        merged = {**self.image.partitions, **self.partition_changes}
        if len(merged) > len(self.image.partitions):
            merged = dict(sorted(merged.items()))
        return TopicImage(self.image.name, self.image.topic_id, merged)


class TopicsDelta:
    """The topics that records since `image` changed.

    Attributes:
        changed: by topic id, the topics created or altered, in the order of their first record.
        deleted: by topic id, the topics removed, as they were.
        unclean_elections: how many leaders that may lack records were elected.
    """

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.changed: dict[bytes, TopicDelta] = {}
        self.deleted: dict[bytes, TopicImage] = {}
        self.unclean_elections = 0

    def created(self) -> list[TopicDelta]:
        return [topic for topic in self.changed.values() if topic.is_new]

    def grown(self) -> list[str]:
        """Return the names of topics that were there, and have more partitions now."""
        return [
            topic.name
            for topic in self.changed.values()
            if not topic.is_new and not topic.partition_changes.keys() <= topic.image.partitions.keys()
        ]

    def _topic(self, topic_id: bytes, cause: str) -> TopicDelta:
        found = self.changed.get(topic_id)
        if found is None:
            image = self.image.by_id.get(topic_id)
            assert image is not None, f"{cause} names topic id {uuid_to_str(topic_id)}, which no record has created"
            assert topic_id not in self.deleted, f"{cause} names a topic that an earlier record removed"
            found = self.changed[topic_id] = TopicDelta(image, is_new=False)
        return found

    def replay_topic(self, record: messages.TopicRecord) -> None:
        assert record.topic_id not in self.changed, f"topic id {uuid_to_str(record.topic_id)} is created twice"
        fault = topic_names.fault(record.name)
        assert fault is None, f"TopicRecord with an impossible name: {fault}"
        created = TopicDelta(TopicImage(record.name, record.topic_id, {}), is_new=True)
        self.changed[record.topic_id] = created

    def replay_partition(self, record: messages.PartitionRecord) -> None:
        topic = self._topic(record.topic_id, "PartitionRecord")
        assert record.partition_id >= 0, f"PartitionRecord of {topic.name} with the index {record.partition_id}"
        topic.partition_changes[record.partition_id] = PartitionRegistration.from_record(record)

    def replay_partition_change(self, record: messages.PartitionChangeRecord) -> None:
        topic = self._topic(record.topic_id, "PartitionChangeRecord")
        before = topic.current(record.partition_id)
        assert before is not None, f"PartitionChangeRecord names {topic.name}-{record.partition_id}, which is unknown"
        topic.partition_changes[record.partition_id] = before.changed_by(record)
        self.unclean_elections += record.leader_recovery_state == LEADER_RECOVERING

    def replay_remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        removed = self._topic(record.topic_id, "RemoveTopicRecord")
        del self.changed[record.topic_id]
        if not removed.is_new:
            self.deleted[record.topic_id] = removed.image

    def replay_clear_elr(self, record: messages.ClearElrRecord) -> None:
        """Forget the eligible leader replicas of one topic or, for an empty name, of all."""
        unchanged = (topic_id for topic_id in self.image.by_id if topic_id not in self.changed)
        for topic_id in [*self.changed, *(topic_id for topic_id in unchanged if topic_id not in self.deleted)]:
            delta = self.changed.get(topic_id)
            topic = self.image.by_id[topic_id] if delta is None else delta.apply()
            if record.topic_name not in ("", topic.name):
                continue
            for index, now in topic.partitions.items():
                if now.elr or now.last_known_elr:
                    cleared = now._replace(elr=(), last_known_elr=(), partition_epoch=now.partition_epoch + 1)
                    self._topic(topic_id, "ClearElrRecord").partition_changes[index] = cleared

    def apply(self) -> TopicsImage:
        by_name, by_id, index = dict(self.image.by_name), dict(self.image.by_id), IndexDelta(self.image.partition_index)
        for topic_id, topic in self.deleted.items():
            for partition_id, partition in topic.partitions.items():
                index.change(topic_id, partition_id, partition, None)
            del by_id[topic_id]
            if by_name[topic.name].topic_id == topic_id:
                del by_name[topic.name]
        for topic_id, delta in self.changed.items():
            before = delta.image.partitions
            for partition_id, after in delta.partition_changes.items():
                index.change(topic_id, partition_id, before.get(partition_id), after)
            by_name[delta.name] = by_id[topic_id] = delta.apply()
        return TopicsImage(by_name, by_id, index.apply())
