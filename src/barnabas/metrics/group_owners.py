"""The partitions that each member of a group owns, for classic and consumer groups.

- A classic member's assignment is decoded from the bytes of its leader if the group uses the consumer protocol; other protocols, such
  as Connect's, do not assign partitions.
- A consumer group's member owns its assignment in the coordinator. Members of share groups share partitions and members of streams
  groups have tasks: neither owns a partition.

Source: Kafka's `ConsumerProtocol`; the labels of Kafka Lag Exporter.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.group.classic.consumer_protocol import read_assignment
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.group import Group
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import MalformedMessage

__all__ = ["NOBODY", "Owner", "owners"]


class Owner(NamedTuple):
    """The labels of a member."""

    member_id: str
    client_id: str
    host: str


NOBODY = Owner("", "", "")


def owners(group: Group, image: MetadataImage) -> dict[tuple[str, int], Owner]:
    """Return the owner of each owned partition, by topic and index."""
    if isinstance(group, ClassicGroup):
        return _classic(group)
    if isinstance(group, ConsumerGroup):
        return _consumer(group, image)
    return {}


def _classic(group: ClassicGroup) -> dict[tuple[str, int], Owner]:
    if not group.uses_consumer_group_protocol:
        return {}
    found = {}
    for member in group.members.values():
        try:
            assigned = read_assignment(member.assignment).assigned_partitions if member.assignment else []
        except MalformedMessage:
            continue
        owner = Owner(member.member_id, member.client_id, member.client_host)
        found.update({(topic.topic, index): owner for topic in assigned for index in topic.partitions})
    return found


def _consumer(group: ConsumerGroup, image: MetadataImage) -> dict[tuple[str, int], Owner]:
    found = {}
    for member in group.members.values():
        owner = Owner(member.member_id, member.client_id, member.client_host)
        for topic_id, indexes in member.assigned.items():
            name = image.topics.name_of(topic_id)
            if name is not None:
                found.update({(name, index): owner for index in indexes})
    return found
