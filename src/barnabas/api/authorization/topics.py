"""The checks of requests that name topics: records, offsets, producers.

Every topic is asked about before anybody looks whether it exists. A topic that is named by an id is asked about by its name; an id that no
topic has gets UNKNOWN_TOPIC_ID from the handler, without a question: ids are no secret.

Source: Kafka's `KafkaApis`, method by method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.protocol.primitives import RecordSlice
from barnabas.records.record_batch import MAGIC, TRANSACTIONAL, batch_prefix
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["delete_records", "describe_producers", "list_offsets", "offset_for_leader_epoch", "produce"]

PRODUCE_BY_ID_SINCE = 13

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def produce(
    asker: Asker,
    request: ProduceRequest,
    then: Callable[[ProduceRequest], Awaitable[ProduceResponse | None]],
) -> ProduceResponse | None:
    """Ask for the transactional id of transactional batches, then for each topic.

    With acks=0 a refusal has no response: the allowed topics are appended, and then the connection is closed.
    """
    if request.transactional_id is not None and _is_transactional(request):
        asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    by_id = asker.version >= PRODUCE_BY_ID_SINCE

    def name_of(topic: ProduceRequest.TopicProduceData) -> str | None:
        return asker.image().topics.name_of(topic.topic_id) if by_id else topic.name

    allowed, denied = asker.split_now(request.topic_data, AclOperation.WRITE, ResourceType.TOPIC, name_of)
    if not denied:
        return await then(request)
    request.topic_data = allowed
    response = await then(request) if allowed else ProduceResponse()
    if request.acks == 0:
        raise KafkaError(_DENIED)  # Dispatch closes the connection of a failed Produce that wants no response.
    assert response is not None, "a Produce with acknowledgements has a response"
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            ProduceResponse.PartitionProduceResponse(index=each.index, error_code=_DENIED, base_offset=-1)
            for each in topic.partition_data
        ]
        response.responses.append(
            ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=refused)
        )
    return response


def _is_transactional(request: ProduceRequest) -> bool:
    """Return whether any batch is of a transaction; formats before v2 have none."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            assert not isinstance(records, RecordSlice), "a request has bytes"
            prefix = batch_prefix(records)
            if prefix is not None and prefix[2] & TRANSACTIONAL and prefix[1] == MAGIC:
                return True
    return False


async def list_offsets(
    asker: Asker, request: ListOffsetsRequest, then: Callable[[ListOffsetsRequest], Awaitable[ListOffsetsResponse]]
) -> ListOffsetsResponse:
    """Ask for each topic; followers are asked too."""
    allowed, denied = await asker.split(
        request.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.name
    )
    request.topics = allowed
    response = await then(request)
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=_DENIED)
            for each in topic.partitions
        ]
        response.topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=refused))
    return response


async def delete_records(
    asker: Asker,
    request: DeleteRecordsRequest,
    then: Callable[[DeleteRecordsRequest], Awaitable[DeleteRecordsResponse]],
) -> DeleteRecordsResponse:
    """Ask for each topic."""
    allowed, denied = await asker.split(
        request.topics, AclOperation.DELETE, ResourceType.TOPIC, lambda topic: topic.name
    )
    request.topics = allowed
    response = await then(request)
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=-1, error_code=_DENIED
            )
            for each in topic.partitions
        ]
        response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=refused))
    return response


async def offset_for_leader_epoch(
    asker: Asker,
    request: OffsetForLeaderEpochRequest,
    then: Callable[[OffsetForLeaderEpochRequest], Awaitable[OffsetForLeaderEpochResponse]],
) -> OffsetForLeaderEpochResponse:
    """Ask for the cluster, as a follower may, else for each topic."""
    if asker.may_cluster(AclOperation.CLUSTER_ACTION, is_loud=False):
        return await then(request)
    allowed, denied = await asker.split(
        request.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.topic
    )
    request.topics = allowed
    response = await then(request)
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            OffsetForLeaderEpochResponse.EpochEndOffset(partition=each.partition, error_code=_DENIED)
            for each in topic.partitions
        ]
        response.topics.append(
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=refused)
        )
    return response


async def describe_producers(
    asker: Asker,
    request: DescribeProducersRequest,
    then: Callable[[DescribeProducersRequest], Awaitable[DescribeProducersResponse]],
) -> DescribeProducersResponse:
    """Ask for each topic whose name is legal; the handler refuses the others."""

    def name_of(topic: DescribeProducersRequest.TopicRequest) -> str | None:
        return None if topic_names.fault(topic.name) else topic.name

    allowed, denied = await asker.split(request.topics, AclOperation.READ, ResourceType.TOPIC, name_of)
    request.topics = allowed
    response = await then(request)
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            DescribeProducersResponse.PartitionResponse(
                partition_index=index, error_code=_DENIED, error_message=_DENIED.default_message
            )
            for index in topic.partition_indexes
        ]
        response.topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=refused))
    return response
