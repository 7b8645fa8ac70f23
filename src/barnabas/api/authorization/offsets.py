"""The checks of requests about a group's offsets: the group first, then each topic.

Source: Kafka's `KafkaApis.handleOffsetCommitRequest`, `fetchOffsetsForGroup`, `fetchAllOffsetsForGroup`, `handleOffsetDeleteRequest`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["offset_commit", "offset_delete", "offset_fetch"]

COMMIT_BY_ID_SINCE = 10
MANY_GROUPS_SINCE = 8
FETCH_BY_ID_SINCE = 10

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_Topics = OffsetFetchRequest.OffsetFetchRequestTopics
_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Fetch = Callable[[OffsetFetchRequest], Awaitable[OffsetFetchResponse]]


async def offset_commit(
    asker: Asker, request: OffsetCommitRequest, then: Callable[[OffsetCommitRequest], Awaitable[OffsetCommitResponse]]
) -> OffsetCommitResponse:
    """Ask for the group, then for each topic."""
    asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    by_id = asker.version >= COMMIT_BY_ID_SINCE

    def name_of(topic: OffsetCommitRequest.OffsetCommitRequestTopic) -> str | None:
        return asker.image().topics.name_of(topic.topic_id) if by_id else topic.name

    allowed, denied = await asker.split(request.topics, AclOperation.READ, ResourceType.TOPIC, name_of)
    if not denied:
        return await then(request)
    request.topics = allowed
    response = await then(request) if allowed else OffsetCommitResponse()
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=_DENIED)
            for each in topic.partitions
        ]
        response.topics.append(
            OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=refused)
        )
    return response


async def offset_fetch(asker: Asker, request: OffsetFetchRequest, then: _Fetch) -> OffsetFetchResponse:
    """Ask for each group, then for each topic; without names the topics that the client may not describe are left out."""
    if asker.version < MANY_GROUPS_SINCE:
        return await _of_one_group(asker, request, then)
    groups, denied = await asker.split(
        request.groups, AclOperation.DESCRIBE, ResourceType.GROUP, lambda group: group.group_id
    )
    request.groups = groups
    refused: list[list[_Topics]] = []
    for group in groups:
        if group.topics is None:
            refused.append([])
        else:
            group.topics, hidden = await _split(asker, group.topics)
            refused.append(hidden)
    asked_for_all = [group.topics is None for group in groups]
    response = await then(request) if groups else OffsetFetchResponse()
    for answered, hidden, is_for_all in zip(response.groups, refused, asked_for_all, strict=True):
        if answered.error_code:
            continue
        if is_for_all:
            answered.topics, _ = await asker.split(
                answered.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.name
            )
        answered.topics = [*answered.topics, *[await _refused(topic) for topic in hidden]]
    for group in denied:
        await pace(ELEMENT)
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        response.groups.append(_Group(group_id=group.group_id, error_code=code))
    return response


async def _split(asker: Asker, topics: list[_Topics]) -> tuple[list[_Topics], list[_Topics]]:
    by_id = asker.version >= FETCH_BY_ID_SINCE

    def name_of(topic: _Topics) -> str | None:
        return asker.image().topics.name_of(topic.topic_id) if by_id else topic.name

    return await asker.split(topics, AclOperation.DESCRIBE, ResourceType.TOPIC, name_of)


async def _refused(topic: _Topics) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    partitions = []
    for index in topic.partition_indexes:
        await pace(ELEMENT)
        partitions.append(
            OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, metadata="", error_code=_DENIED
            )
        )
    return OffsetFetchResponse.OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


async def _of_one_group(asker: Asker, request: OffsetFetchRequest, then: _Fetch) -> OffsetFetchResponse:
    """Do the same in a version without a list of groups."""
    asker.need(AclOperation.DESCRIBE, ResourceType.GROUP, request.group_id)
    if request.topics is None:
        response = await then(request)
        response.topics, _ = await asker.split(
            response.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.name
        )
        return response
    request.topics, denied = await asker.split(
        request.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.name
    )
    response = await then(request)
    for topic in denied if not response.error_code else ():
        await pace(ELEMENT)
        refused = [
            OffsetFetchResponse.OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1, metadata="", error_code=_DENIED
            )
            for index in topic.partition_indexes
        ]
        response.topics.append(OffsetFetchResponse.OffsetFetchResponseTopic(name=topic.name, partitions=refused))
    return response


async def offset_delete(
    asker: Asker, request: OffsetDeleteRequest, then: Callable[[OffsetDeleteRequest], Awaitable[OffsetDeleteResponse]]
) -> OffsetDeleteResponse:
    """Ask for the group, then for each topic."""
    asker.need(AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    allowed, denied = await asker.split(request.topics, AclOperation.READ, ResourceType.TOPIC, lambda topic: topic.name)
    request.topics = allowed
    response = await then(request)
    for topic in denied if not response.error_code else ():
        await pace(ELEMENT)
        refused = [
            OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=_DENIED)
            for each in topic.partitions
        ]
        response.topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=refused))
    return response
