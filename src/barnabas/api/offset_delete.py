"""OffsetDelete (API key 47). Control plane.

Versions served: 0 (never flexible).

- Offsets of topics that a member subscribes to are kept: GROUP_SUBSCRIBED_TO_TOPIC.
- A topic or partition that is not there: UNKNOWN_TOPIC_OR_PARTITION, unless the whole request fails.
- The whole request: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (members, and not consumers), INVALID_GROUP_ID.

Version 0: KIP-496.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import mapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(context: RequestContext, request: OffsetDeleteRequest) -> asyncio.Future[OffsetDeleteResponse]:
    """Delete committed offsets."""
    topics = context.services.image().topics.by_name
    refused: dict[str, Topic] = {}
    accepted = OffsetDeleteRequest(group_id=request.group_id)
    for topic in request.topics:
        image = topics.get(topic.name)
        known = []
        for partition in topic.partitions:
            if image is not None and partition.partition_index in image.partitions:
                known.append(partition)
                continue
            refused.setdefault(topic.name, Topic(name=topic.name)).partitions.append(
                Partition(partition_index=partition.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
        if known:
            accepted.topics.append(OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic.name, partitions=known))

    def merged(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        for topic in response.topics:
            earlier = refused.pop(topic.name, None)
            if earlier is not None:
                topic.partitions = [*earlier.partitions, *topic.partitions]
        if response.error_code == ErrorCode.NONE:
            response.topics = [*refused.values(), *response.topics]
        return response

    return mapped(context.services.loop, context.services.group_coordinator.offset_delete(accepted), merged)
