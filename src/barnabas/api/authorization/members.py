"""The checks of members' heartbeats and of the descriptions of groups whose protocol may be switched off (KIP-848, KIP-932, KIP-1071).

Handlers call these themselves, since a protocol that is switched off is UNSUPPORTED_VERSION before anything is asked.

- A member needs READ on its group, and DESCRIBE on every topic that it names; which one is missing the error does not say.
- A group whose assignments have a topic that the client may not describe is hidden as a whole.

Source: Kafka's `KafkaApis.handleConsumerGroupHeartbeat`, `handleConsumerGroupDescribe`, and their like for share and streams groups.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.authorization.groups import with_bits
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
)
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = [
    "check_member",
    "describe_consumer_groups",
    "describe_share_groups",
    "describe_streams_groups",
    "topics_of_topology",
]

HIDDEN = "The group has described topic(s) that the client is not authorized to describe."
HIDDEN_STREAMS = "The described group uses topics that the client is not authorized to describe."

_Consumer = ConsumerGroupDescribeResponse.DescribedGroup
_Share = ShareGroupDescribeResponse.DescribedGroup
_Streams = StreamsGroupDescribeResponse.DescribedGroup
G = TypeVar("G", _Consumer, _Share, _Streams)


async def check_member(asker: Asker | None, group_id: str, topics: Iterable[str] | None) -> None:
    """Refuse a member's heartbeat unless it may read for the group and describe the topics that it names.

    Args:
        asker: None without an authorizer.

    Raises:
        KafkaError: GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED.
    """
    if asker is None:
        return
    asker.need(AclOperation.READ, ResourceType.GROUP, group_id)
    if topics and not await asker.may_all(list(topics), AclOperation.DESCRIBE, ResourceType.TOPIC):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def topics_of_topology(topology: StreamsGroupHeartbeatRequest.Topology | None) -> list[str]:
    """Return every topic of a topology, once."""
    names: dict[str, None] = {}
    for part in () if topology is None else topology.subtopologies:
        names |= dict.fromkeys(part.source_topics)
        names |= dict.fromkeys(part.repartition_sink_topics)
        names |= dict.fromkeys(topic.name for topic in part.repartition_source_topics)
        names |= dict.fromkeys(topic.name for topic in part.state_changelog_topics)
    return list(names)


async def describe_consumer_groups(
    asker: Asker, group_ids: Sequence[str], find: Callable[[list[str]], Awaitable[list[_Consumer]]], has_bits: bool
) -> list[_Consumer]:
    """Return the consumer groups that the client may see, and an error for each of the others."""

    def topics_of(group: _Consumer) -> Iterator[str]:
        for member in group.members:
            for assignment in (member.assignment, member.target_assignment):
                yield from (each.topic_name for each in assignment.topic_partitions)

    def refused(group_id: str, code: int, message: str | None = None) -> _Consumer:
        return _Consumer(group_id=group_id, error_code=code, error_message=message)

    return await _described(asker, group_ids, find, has_bits, topics_of, refused, HIDDEN)


async def describe_share_groups(
    asker: Asker, group_ids: Sequence[str], find: Callable[[list[str]], Awaitable[list[_Share]]], has_bits: bool
) -> list[_Share]:
    """Do the same for share groups."""

    def topics_of(group: _Share) -> Iterator[str]:
        for member in group.members:
            yield from (each.topic_name for each in member.assignment.topic_partitions)

    def refused(group_id: str, code: int, message: str | None = None) -> _Share:
        return _Share(group_id=group_id, error_code=code, error_message=message)

    return await _described(asker, group_ids, find, has_bits, topics_of, refused, HIDDEN)


async def describe_streams_groups(
    asker: Asker, group_ids: Sequence[str], find: Callable[[list[str]], Awaitable[list[_Streams]]], has_bits: bool
) -> list[_Streams]:
    """Do the same for streams groups, by the topics of their topologies."""

    def topics_of(group: _Streams) -> Iterator[str]:
        topology = group.topology
        for part in () if topology is None else topology.subtopologies or ():
            yield from part.source_topics
            yield from part.repartition_sink_topics
            yield from (each.name for each in part.repartition_source_topics)
            yield from (each.name for each in part.state_changelog_topics)

    def refused(group_id: str, code: int, message: str | None = None) -> _Streams:
        return _Streams(group_id=group_id, error_code=code, error_message=message, topology=None)

    return await _described(asker, group_ids, find, has_bits, topics_of, refused, HIDDEN_STREAMS)


async def _described(
    asker: Asker,
    group_ids: Sequence[str],
    find: Callable[[list[str]], Awaitable[list[G]]],
    has_bits: bool,
    topics_of: Callable[[G], Iterator[str]],
    refused: Callable[..., G],
    hidden: str,
) -> list[G]:
    allowed, denied = await asker.split(group_ids, AclOperation.DESCRIBE, ResourceType.GROUP, str)
    groups: list[G] = []
    for group in await find(allowed):
        await pace(ELEMENT)
        names = list(dict.fromkeys(topics_of(group)))
        if names and not await asker.may_all(names, AclOperation.DESCRIBE, ResourceType.TOPIC):
            groups.append(refused(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden))
        else:
            groups.append(group)
    if has_bits:
        await with_bits(asker, groups)
    for group_id in denied:
        await pace(ELEMENT)
        groups.append(refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return groups
