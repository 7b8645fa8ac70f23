"""The checks of requests that describe topics and the cluster: Metadata and DescribeCluster.

- A topic that a client may not describe is an error if the client names it, and left out if the client asks for all of them.
- Brokers, the cluster's id and the controller's id need nothing.
- The answer has the client's own operations as bits, on the topics that it may describe and on the cluster.

Source: Kafka's `KafkaApis.handleTopicMetadataRequest`, `AuthHelper`; KIP-430.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.api.authorization.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["describe_cluster", "describe_controllers", "metadata"]

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOTHING = 0
_NOT_ASKED = -(1 << 31)

_Asked = MetadataRequest.MetadataRequestTopic
_Topic = MetadataResponse.MetadataResponseTopic
_Metadata = Callable[[MetadataRequest], Awaitable[MetadataResponse]]


async def metadata(
    asker: Asker, request: MetadataRequest, then: _Metadata, *, creates_topics: bool
) -> MetadataResponse:
    """Ask for each topic, and for the creation of those that are missing.

    Args:
        creates_topics: `auto.create.topics.enable`.
    """
    is_for_all = request.topics is None or (asker.version == 0 and not request.topics)
    if is_for_all:
        response = await then(request)
        response.topics, _ = await asker.split(
            response.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.name, is_loud=False
        )
        refused: list[_Topic] = []
    else:
        refused = await _refused(asker, request, creates_topics=creates_topics)
        response = await _of_the_rest(asker, request, then)
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            await pace(ELEMENT)
            topic.topic_authorized_operations = (
                _NOT_ASKED if topic.name is None else asker.bits(TOPIC_OPERATIONS, ResourceType.TOPIC, topic.name)
            )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _cluster_bits(asker)
    response.topics += refused
    return response


async def _refused(asker: Asker, request: MetadataRequest, *, creates_topics: bool) -> list[_Topic]:
    """Take the refused topics out of the request, and return what the response says of them."""
    topics = asker.image().topics

    def name_of(topic: _Asked) -> str | None:
        return topics.name_of(topic.topic_id) if topic.topic_id != ZERO_UUID else topic.name

    assert request.topics is not None, "all topics are asked for"
    allowed, denied = await asker.split(request.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, name_of)
    null = None if asker.version >= 12 else ""
    refused: dict[tuple[str | None, bytes], _Topic] = {}
    for asked in denied:
        await pace(ELEMENT)
        by_id = asked.topic_id != ZERO_UUID
        name = null if by_id else asked.name
        refused[name, asked.topic_id] = _Topic(error_code=_DENIED, name=name, topic_id=asked.topic_id)
    if request.allow_auto_topic_creation and creates_topics:
        missing = [topic for topic in allowed if topic.topic_id == ZERO_UUID and topic.name not in topics.by_name]
        if missing and not asker.may_cluster(AclOperation.CREATE, is_loud=False):
            _, denied = await asker.split(missing, AclOperation.CREATE, ResourceType.TOPIC, lambda topic: topic.name)
            names = {topic.name for topic in denied}
            allowed = [topic for topic in allowed if topic.topic_id != ZERO_UUID or topic.name not in names]
            for name in names:
                await pace(ELEMENT)
                is_internal = name in topic_names.INTERNAL_TOPICS
                refused[name, ZERO_UUID] = _Topic(error_code=_DENIED, name=name, is_internal=is_internal)
    request.topics = allowed
    return list(refused.values())


async def _of_the_rest(asker: Asker, request: MetadataRequest, then: _Metadata) -> MetadataResponse:
    """Return the response about the allowed topics; in version 0 no topics would mean all of them."""
    if request.topics or asker.version > 0:
        return await then(request)
    request.topics = [_Asked(name="")]
    response = await then(request)
    response.topics = []
    return response


async def describe_cluster(
    asker: Asker,
    request: DescribeClusterRequest,
    then: Callable[[DescribeClusterRequest], Awaitable[DescribeClusterResponse]],
) -> DescribeClusterResponse:
    """Put the client's own bits into the response."""
    response = await then(request)
    if request.include_cluster_authorized_operations and not response.error_code:
        response.cluster_authorized_operations = _cluster_bits(asker)
    return response


async def describe_controllers(
    asker: Asker,
    request: DescribeClusterRequest,
    then: Callable[[DescribeClusterRequest], Awaitable[DescribeClusterResponse]],
) -> DescribeClusterResponse:
    """Ask for ALTER on the cluster, which is more than a broker asks for."""
    asker.need_cluster(AclOperation.ALTER)
    return await describe_cluster(asker, request, then)


def _cluster_bits(asker: Asker) -> int:
    """Return what the client may do to the cluster; nothing unless it may describe it."""
    if not asker.may_cluster(AclOperation.DESCRIBE):
        return _NOTHING
    return asker.bits(CLUSTER_OPERATIONS, ResourceType.CLUSTER, CLUSTER_NAME)
