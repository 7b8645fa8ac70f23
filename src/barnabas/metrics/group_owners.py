"""Which member of a group has which partition, whatever protocol the members speak. Control plane.

- A classic member's assignment is read from the bytes that its leader gave it, if they are of the consumers' own protocol;
  Connect's and others say nothing about partitions.
- A consumer group's member has what it was assigned, as the coordinator knows it. Members of share groups share their partitions,
  and a streams group's have tasks: neither owns a partition, and nobody is named.

Source: Kafka's `ConsumerProtocol`; the labels of Kafka Lag Exporter.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.group.classic.group import ClassicGroup
from barnabas.group.group import Group, GroupType
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import MalformedMessage

__all__ = ["NOBODY", "Owner", "owners"]


class Owner(NamedTuple):
    """A member, as labels name it."""

    member_id: str
    client_id: str
    host: str


NOBODY = Owner("", "", "")


def owners(group: Group, image: MetadataImage) -> dict[tuple[str, int], Owner]:
    """The owner of each partition that has one, by topic and index."""
    if isinstance(group, ClassicGroup):
        return _classic(group)
    if group.type is GroupType.CONSUMER:
        return _consumer(group, image)
    return {}


def _classic(group: ClassicGroup) -> dict[tuple[str, int], Owner]:
    if not group.uses_consumer_group_protocol:
        return {}
    from barnabas.group.classic.consumer_protocol import read_assignment

    found = {}
    for member in group.members.values():
        try:
            assigned = read_assignment(member.assignment).assigned_partitions if member.assignment else []
        except MalformedMessage:
            continue
        owner = Owner(member.member_id, member.client_id, member.client_host)
        found.update({(topic.topic, index): owner for topic in assigned for index in topic.partitions})
    return found


def _consumer(group: Group, image: MetadataImage) -> dict[tuple[str, int], Owner]:
    from barnabas.group.consumer.group import ConsumerGroup

    assert isinstance(group, ConsumerGroup), group
    found = {}
    for member in group.members.values():
        owner = Owner(member.member_id, member.client_id, member.client_host)
        for topic_id, indexes in member.assigned.items():
            name = image.topics.name_of(topic_id)
            if name is not None:
                found.update({(name, index): owner for index in indexes})
    return found
