"""The checks of requests about the offsets of share groups: the group first, then each topic (KIP-932).

Handlers call these, after the check of `share.version`.

Source: Kafka's `KafkaApis.handleDescribeShareGroupOffsetsRequest`, `handleAlterShareGroupOffsetsRequest`,
`handleDeleteShareGroupOffsetsRequest`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker
    from barnabas.metadata.image import MetadataImage

__all__ = ["alter", "delete", "describe"]

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
_Partition = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


async def describe(asker: Asker, asked: _Asked, then: Callable[[_Asked], Awaitable[_Group]]) -> _Group:
    """Return a group's offsets in the topics that the client may describe."""
    if not asker.may(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        # Without words, as in Kafka; a denied topic has them.
        return _Group(group_id=asked.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if asked.topics is None:
        group = await then(asked)
        group.topics, _ = await asker.split(
            group.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.topic_name
        )
        return group
    asked.topics, denied = await asker.split(
        asked.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.topic_name
    )
    group = await then(asked)
    for topic in denied if not group.error_code else ():
        await pace(ELEMENT)
        refused = [
            _Partition(
                partition_index=index, start_offset=-1, error_code=_DENIED, error_message=_DENIED.default_message
            )
            for index in topic.partitions
        ]
        group.topics.append(_Topic(topic_name=topic.topic_name, topic_id=ZERO_UUID, partitions=refused))
    return group


async def alter(
    asker: Asker,
    request: AlterShareGroupOffsetsRequest,
    then: Callable[[AlterShareGroupOffsetsRequest], Awaitable[AlterShareGroupOffsetsResponse]],
) -> AlterShareGroupOffsetsResponse:
    """Ask for the group, then for each topic; the answer has the id of a denied topic, too, as in Kafka."""
    asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    request.topics, denied = await asker.split(
        request.topics, AclOperation.READ, ResourceType.TOPIC, lambda topic: topic.topic_name
    )
    response = await then(request)
    for topic in denied if not response.error_code else ():
        await pace(ELEMENT)
        refused = [
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index, error_code=_DENIED, error_message=_DENIED.default_message
            )
            for each in topic.partitions
        ]
        topic_id = _id_of(asker.image(), topic.topic_name)
        response.responses.append(
            AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=topic_id, partitions=refused
            )
        )
    return response


async def delete(
    asker: Asker,
    request: DeleteShareGroupOffsetsRequest,
    then: Callable[[DeleteShareGroupOffsetsRequest], Awaitable[DeleteShareGroupOffsetsResponse]],
) -> DeleteShareGroupOffsetsResponse:
    """Ask for the group, then for each topic."""
    asker.need(AclOperation.DELETE, ResourceType.GROUP, request.group_id)
    request.topics, denied = await asker.split(
        request.topics, AclOperation.READ, ResourceType.TOPIC, lambda topic: topic.topic_name
    )
    response = await then(request)
    for topic in denied if not response.error_code else ():
        await pace(ELEMENT)
        response.responses.append(
            DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, error_code=_DENIED, error_message=_DENIED.default_message
            )
        )
    return response


def _id_of(image: MetadataImage, name: str) -> bytes:
    topic = image.topics.by_name.get(name)
    return ZERO_UUID if topic is None else topic.topic_id
