"""OffsetCommit (API key 8, versions 2-10).

- Members commit with their generation; offsets without one (-1) are accepted if the group has no members.
- Missing partitions: UNKNOWN_TOPIC_OR_PARTITION; from version 10, which names topics by id, UNKNOWN_TOPIC_ID.
- Metadata over offset.metadata.max.bytes: OFFSET_METADATA_TOO_LARGE for that partition. Null metadata is kept as empty.
- An error of the group (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID) is returned for
  every partition that exists.

Versions 2-4 carry a retention time, 6 adds the leader epoch (KIP-320), 7 the group instance id (KIP-345), 8 is flexible,
9 has GROUP_ID_NOT_FOUND (KIP-848), 10 topic ids.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.group import requests
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from barnabas.turns import ELEMENT, RECORD, pace

TOPIC_IDS_SINCE = 10

RequestTopic = OffsetCommitRequest.OffsetCommitRequestTopic
ResponseTopic = OffsetCommitResponse.OffsetCommitResponseTopic
ResponsePartition = OffsetCommitResponse.OffsetCommitResponsePartition


async def handle(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit offsets."""
    image = context.services.image()
    refused: list[ResponseTopic] = []
    accepted: list[RequestTopic] = []
    for topic in request.topics:
        if context.is_long:
            await pace(ELEMENT)
        known, unknown = await _split(context, image, topic)
        if known.partitions:
            accepted.append(known)
        if unknown.partitions:
            refused.append(unknown)
    if not accepted:
        return OffsetCommitResponse(topics=refused)
    request.topics = accepted
    response = await requests.offset_commit(context.services.group_coordinator, request, context.version)
    return await _merged(refused, response) if refused else response


async def _split(
    context: RequestContext, image: MetadataImage, topic: RequestTopic
) -> tuple[RequestTopic, ResponseTopic]:
    """Separate the partitions that exist from those that do not."""
    by_id = context.version >= TOPIC_IDS_SINCE
    found = image.topics.by_id.get(topic.topic_id) if by_id else image.topics.by_name.get(topic.name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if found is not None:
        # The id is kept with the offset either way: a topic created again under the name has no offsets.
        topic.name, topic.topic_id = found.name, found.topic_id
    elif by_id:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    unknown = ResponseTopic(name=topic.name, topic_id=topic.topic_id)
    known = []
    for partition in topic.partitions:
        if context.is_long:
            await pace(RECORD)
        if found is not None and partition.partition_index in found.partitions:
            known.append(partition)
        else:
            unknown.partitions.append(ResponsePartition(partition_index=partition.partition_index, error_code=error))
    topic.partitions = known
    return topic, unknown


async def _merged(refused: list[ResponseTopic], response: OffsetCommitResponse) -> OffsetCommitResponse:
    """Return each topic once, with the outcomes of all its partitions."""
    by_name = {}
    for topic in refused:
        await pace(RECORD)
        by_name[topic.name] = topic
    for topic in response.topics:
        await pace(RECORD)
        earlier = by_name.get(topic.name)
        if earlier is None:
            refused.append(topic)
        else:
            earlier.partitions += topic.partitions
    response.topics = refused
    return response
