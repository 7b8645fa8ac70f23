"""OffsetFetch (API key 9, versions 1-10).

- Partitions without an offset have offset -1 and empty metadata; the group need not exist.
- A null list of topics asks for all offsets of the group; an empty one for none.
- From version 8 a request names several groups; before it one, whose response is in the old fields.
- `require_stable`: an offset that an open transaction may replace is UNSTABLE_OFFSET_COMMIT.
- From version 10 topics are named by id: UNKNOWN_TOPIC_ID for partitions of a missing topic; all offsets of a group do not include
  those of deleted topics.
- An offset that was committed for an earlier topic of the same name is unknown.
- An error of the group is at the top from version 2; version 1 has it on every partition.

Version 2 adds the null list, 5 the leader epoch (KIP-320), 6 is flexible, 7 adds require_stable (KIP-447), 8 many groups
(KIP-709), 9 member and epoch (KIP-848), 10 topic ids.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.let_go import let_go
from barnabas.group import requests
from barnabas.group.parts import extend_topics, parts
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from barnabas.steps import gather
from barnabas.turns import ELEMENT, RECORD, pace

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10

Group = OffsetFetchRequest.OffsetFetchRequestGroup
GroupTopic = OffsetFetchRequest.OffsetFetchRequestTopics
GroupResponse = OffsetFetchResponse.OffsetFetchResponseGroup
GroupTopicResponse = OffsetFetchResponse.OffsetFetchResponseTopics
GroupPartitionResponse = OffsetFetchResponse.OffsetFetchResponsePartitions
OldTopicResponse = OffsetFetchResponse.OffsetFetchResponseTopic


async def handle(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Look committed offsets up."""
    if context.version < MANY_GROUPS_SINCE:
        return await _fetch_old(context, request)
    if len(request.groups) == 1:
        return OffsetFetchResponse(groups=[await _fetch(context, request.groups[0], request.require_stable)])
    fetching = (_fetch(context, group, request.require_stable) for group in request.groups)
    return OffsetFetchResponse(groups=await gather(fetching, context.services.loop))


async def _fetch(context: RequestContext, group: Group, require_stable: bool) -> GroupResponse:
    """Return the offsets of one group; those of many partitions are looked up in parts."""
    one = _fetch_by_id if context.version >= TOPIC_IDS_SINCE else _fetch_by_name
    if group.topics is None:
        return await one(context, group, require_stable)
    whole = GroupResponse(group_id=group.group_id)
    async for topics in parts(group.topics, "partition_indexes"):
        group.topics = topics
        response = await one(context, group, require_stable)
        if response.error_code != ErrorCode.NONE:
            return response
        extend_topics(whole.topics, response.topics)
    return whole


async def _fetch_by_name(context: RequestContext, group: Group, require_stable: bool) -> GroupResponse:
    topics = context.services.image().topics.by_name
    for topic in group.topics or ():
        found = topics.get(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id
    return await requests.offset_fetch(context.services.group_coordinator, group, require_stable)


async def _fetch_by_id(context: RequestContext, group: Group, require_stable: bool) -> GroupResponse:
    image = context.services.image()
    unknown: list[GroupTopicResponse] = []
    if group.topics is not None:
        known = []
        for topic in group.topics:
            found = image.topics.by_id.get(topic.topic_id)
            if found is None:
                unknown.append(await _failed_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topic.name = found.name
                known.append(topic)
        group.topics = known
    response = await requests.offset_fetch(context.services.group_coordinator, group, require_stable)
    if response.error_code == ErrorCode.NONE:
        if group.topics is None:
            response.topics = _with_ids(image, response.topics)
        response.topics = [*response.topics, *unknown]
    return response


async def _failed_topic(topic: GroupTopic, error: int) -> GroupTopicResponse:
    partitions = []
    await pace(ELEMENT)
    for index in topic.partition_indexes:
        await pace(ELEMENT)
        partitions.append(
            GroupPartitionResponse(partition_index=index, committed_offset=-1, metadata="", error_code=error)
        )
    return GroupTopicResponse(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _with_ids(image: MetadataImage, topics: list[GroupTopicResponse]) -> list[GroupTopicResponse]:
    kept = []
    for topic in topics:
        found = image.topics.by_name.get(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id
            kept.append(topic)
    return kept


async def _fetch_old(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Serve the one group of a request before version 8."""
    topics = None
    if request.topics is not None:
        topics = []
        for topic in request.topics:
            await pace(RECORD)
            topics.append(GroupTopic(name=topic.name, partition_indexes=topic.partition_indexes))
    group = Group(group_id=request.group_id, topics=topics)
    fetched = await _fetch(context, group, request.require_stable)
    if fetched.error_code != ErrorCode.NONE and context.version < GROUP_ERROR_SINCE:
        fetched.topics = [await _failed_topic(topic, fetched.error_code) for topic in topics or ()]
    topics_then = [await _old_topic(topic) for topic in fetched.topics]
    if context.is_long:
        group.topics = topics
        del topics
        await let_go(group)
        await let_go(fetched)
    return OffsetFetchResponse(error_code=fetched.error_code, topics=topics_then)


async def _old_topic(topic: GroupTopicResponse) -> OldTopicResponse:
    partitions = []
    await pace(ELEMENT)
    for partition in topic.partitions:
        await pace(ELEMENT)
        partitions.append(
            OffsetFetchResponse.OffsetFetchResponsePartition(
                partition_index=partition.partition_index,
                committed_offset=partition.committed_offset,
                committed_leader_epoch=partition.committed_leader_epoch,
                metadata=partition.metadata,
                error_code=partition.error_code,
            )
        )
    return OldTopicResponse(name=topic.name, partitions=partitions)
