"""DescribeTopicPartitions (API key 75, version 0): topics and their partitions, a page at a time.

- Topics in name order. A page has at most the client's limit and `max.request.partition.size.limit` partitions; the cursor names
  the first partition of the next page. Java's admin client tries this before Metadata.
- A request without topics asks for all. The cursor's topic must be among the requested ones and its partition not negative, else
  the response is INVALID_REQUEST.
- Eligible leader replicas are those of the image.
- A partition whose leader has no listener of the connection's name is LISTENER_NOT_FOUND, one without a leader LEADER_NOT_AVAILABLE.

Version 0 is flexible (KIP-966).
"""

from __future__ import annotations

from functools import partial

from barnabas.api.authorization.operations import TOPIC_OPERATIONS as TOPIC_BITS
from barnabas.api.offline_replicas import OfflineReplicas
from barnabas.api.serving.advertised import advertised_endpoint
from barnabas.api.serving.authorized_operations import TOPIC_OPERATIONS
from barnabas.api.serving.context import RequestContext
from barnabas.metadata.image import MetadataImage, TopicImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, RECORD, is_long, pace

_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


async def handle(context: RequestContext, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    image = context.services.image()
    find = partial(_names, image, request)
    has_many = is_long(max(len(image.topics.by_name), len(request.topics)) * RECORD)
    names = await context.services.loop.run_in_executor(None, find) if has_many else find()
    asker = context.asker
    if asker is None:
        return await _page(context, request, image, names)
    allowed, denied = await asker.split(names, AclOperation.DESCRIBE, ResourceType.TOPIC, str)
    response = await _page(context, request, image, allowed)
    for topic in response.topics:
        await pace(ELEMENT)
        topic.topic_authorized_operations = asker.bits(TOPIC_BITS, ResourceType.TOPIC, topic.name or "")
    for name in denied if request.topics else ():  # Of all topics those are left out.
        await pace(ELEMENT)
        response.topics.append(_Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
    return response


async def _page(
    context: RequestContext, request: DescribeTopicPartitionsRequest, image: MetadataImage, names: list[str]
) -> DescribeTopicPartitionsResponse:
    alive = {broker.id for broker in image.cluster.live_brokers()}
    live = {broker_id for broker_id in alive if advertised_endpoint(context, broker_id) is not None}
    offline = OfflineReplicas(image, live)
    cursor = request.cursor
    limit = context.services.config.int_value("max.request.partition.size.limit")
    left = max(min(limit, request.response_partition_limit), 1)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        await pace(ELEMENT)
        if left <= 0:
            response.next_cursor = _cursor(name, 0)
            break
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        topic = image.topics.by_name.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        described = _topic(topic)
        response.topics.append(described)
        for index, partition in topic.partitions.items():
            if index < first:
                continue
            if left <= 0:
                response.next_cursor = _cursor(name, index)
                return response
            left -= 1
            await pace(ELEMENT)
            described.partitions.append(_partition(index, partition, live, offline, partition.leader in alive))
    return response


def _names(image: MetadataImage, request: DescribeTopicPartitionsRequest) -> list[str]:
    cursor = request.cursor
    start = cursor.topic_name if cursor is not None else ""
    names = {topic.name for topic in request.topics} if request.topics else set(image.topics.by_name)
    if cursor is not None:
        if request.topics and cursor.topic_name not in names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
            )
        if cursor.partition_index < 0:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "DescribeTopicPartitionsRequest cursor partition must be valid."
            )
    return sorted(name for name in names if name >= start)


def _cursor(name: str, index: int) -> DescribeTopicPartitionsResponse.Cursor:
    return DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=index)


def _unknown(name: str) -> _Topic:
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_names.fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return _Topic(
        error_code=code,
        name=name,
        is_internal=topic_names.is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _topic(topic: TopicImage) -> _Topic:
    return _Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic_names.is_internal(topic.name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    index: int, partition: PartitionRegistration, live: set[int], offline: OfflineReplicas, is_alive: bool
) -> _Partition:
    has_leader = partition.leader in live
    code = ErrorCode.LISTENER_NOT_FOUND if is_alive else ErrorCode.LEADER_NOT_AVAILABLE
    return _Partition(
        error_code=ErrorCode.NONE if has_leader else code,
        partition_index=index,
        leader_id=partition.leader if has_leader else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline.of(partition),
    )
