"""OffsetDelete (API key 47, version 0).

Versions served: 0 (never flexible).

- Offsets of topics that a member subscribes to are kept: GROUP_SUBSCRIBED_TO_TOPIC.
- A missing topic or partition: UNKNOWN_TOPIC_OR_PARTITION, unless the whole request fails.
- The whole request: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (its members are not consumers), INVALID_GROUP_ID.

Version 0: KIP-496.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.api.serving.context import RequestContext
from barnabas.group import requests
from barnabas.group.parts import extend_topics, parts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

RequestTopic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete committed offsets; those of many partitions in parts."""
    whole = OffsetDeleteResponse()
    async for topics in parts(request.topics):
        response = await _delete(context, request.group_id, topics)
        if response.error_code != ErrorCode.NONE:
            return response
        extend_topics(whole.topics, response.topics)
    return whole


async def _delete(context: RequestContext, group_id: str, topics: Iterable[RequestTopic]) -> OffsetDeleteResponse:
    by_name = context.services.image().topics.by_name
    refused: dict[str, Topic] = {}
    accepted = OffsetDeleteRequest(group_id=group_id)
    for topic in topics:
        image = by_name.get(topic.name)
        known = []
        for partition in topic.partitions:
            if image is not None and partition.partition_index in image.partitions:
                known.append(partition)
                continue
            refused.setdefault(topic.name, Topic(name=topic.name)).partitions.append(
                Partition(partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
        if known:
            accepted.topics.append(RequestTopic(name=topic.name, partitions=known))
    response = await requests.offset_delete(context.services.group_coordinator, accepted)
    for deleted in response.topics:
        earlier = refused.pop(deleted.name, None)
        if earlier is not None:
            deleted.partitions = [*earlier.partitions, *deleted.partitions]
    if response.error_code == ErrorCode.NONE:
        response.topics = [*refused.values(), *response.topics]
    return response
