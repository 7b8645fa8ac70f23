"""A cluster's metadata that a test changes as a controller would."""

from __future__ import annotations

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.topics_image import TopicsDelta
from barnabas.protocol import messages
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import Uuid


def topic_id(number: int) -> Uuid:
    """An id that is easy to read in a dump."""
    return Uuid(number.to_bytes(16, "big"))


class ClusterMetadata:
    """Topics and group settings, with the image of now."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self._offset = 0
        self._next_id = 1

    def _apply(self, records: list[Message]) -> TopicsDelta | None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self._offset += len(records)
        self.image = delta.apply(MetadataProvenance(self._offset, 1, 0))
        return delta.topics

    def set_topic(self, name: str, partitions: int, real_id: bytes | None = None) -> TopicsDelta:
        """Create a topic, with an id of another cluster's if one is given, or give it more partitions."""
        known = self.image.topics.by_name.get(name)
        records: list[Message] = []
        if known is None:
            chosen = bytes(topic_id(self._next_id)) if real_id is None else real_id
            records.append(messages.TopicRecord(name=name, topic_id=Uuid(chosen)))
            self._next_id += 1
        else:
            chosen = known.topic_id
        records += [
            messages.PartitionRecord(topic_id=chosen, partition_id=index, replicas=[1], isr=[1], leader=1)
            for index in range(0 if known is None else len(known.partitions), partitions)
        ]
        delta = self._apply(records)
        assert delta is not None
        return delta

    def delete_topic(self, name: str) -> TopicsDelta:
        delta = self._apply([messages.RemoveTopicRecord(topic_id=self.image.topics.by_name[name].topic_id)])
        assert delta is not None
        return delta

    def set_topic_config(self, topic: str, name: str, value: str) -> None:
        self._apply([messages.ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)])

    def set_group_config(self, group_id: str, name: str, value: str) -> None:
        self._apply([messages.ConfigRecord(resource_type=32, resource_name=group_id, name=name, value=value)])
