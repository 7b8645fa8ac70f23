"""OffsetFetch (API key 9). Control plane.

Versions served: 1-10.

- Partitions without an offset have offset -1 and empty metadata; the group need not exist.
- A null list of topics asks for all offsets of the group; an empty one for none.
- From version 8 several groups are asked for at once; before it there is one, and it is answered in the old fields.
- `require_stable`: an offset that an open transaction may replace is UNSTABLE_OFFSET_COMMIT.
- From version 10 topics are named by id: UNKNOWN_TOPIC_ID for partitions of one that is not there; of all offsets of a group, those
  whose topic is gone are left out.
- An offset that was committed for an earlier topic of the same name is unknown.
- An error of the group is at the top from version 2, and given to every partition in version 1.

Version 2 adds the null list, 5 the leader epoch (KIP-320), 6 is flexible, 7 adds require_stable (KIP-447), 8 many groups
(KIP-709), 9 member and epoch (KIP-848), 10 topic ids.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import gathered, mapped
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10

Group = OffsetFetchRequest.OffsetFetchRequestGroup
GroupTopic = OffsetFetchRequest.OffsetFetchRequestTopics
GroupResponse = OffsetFetchResponse.OffsetFetchResponseGroup
GroupTopicResponse = OffsetFetchResponse.OffsetFetchResponseTopics
GroupPartitionResponse = OffsetFetchResponse.OffsetFetchResponsePartitions


def handle(context: RequestContext, request: OffsetFetchRequest) -> asyncio.Future[OffsetFetchResponse]:
    """Look committed offsets up."""
    coordinator, loop = context.services.group_coordinator, context.services.loop
    if context.version < MANY_GROUPS_SINCE:
        group = _group_of_old_request(request)
        _set_ids(context.services.image(), group)
        fetched = coordinator.offset_fetch(group, request.require_stable)
        return mapped(loop, fetched, lambda response: _old_response(group, response, context.version))
    if context.version < TOPIC_IDS_SINCE:
        for group in request.groups:
            _set_ids(context.services.image(), group)
        groups = [coordinator.offset_fetch(group, request.require_stable) for group in request.groups]
    else:
        groups = [_fetch_by_id(context, group, request.require_stable) for group in request.groups]
    return gathered(loop, groups, lambda parts: OffsetFetchResponse(groups=parts))


# -- topic ids -------------------------------------------------------------------------------------------------------


def _fetch_by_id(context: RequestContext, group: Group, require_stable: bool) -> asyncio.Future[GroupResponse]:
    image = context.services.image()
    unknown: list[GroupTopicResponse] = []
    if group.topics is not None:
        known = []
        for topic in group.topics:
            found = image.topics.by_id.get(topic.topic_id)
            if found is None:
                unknown.append(_unknown_topic(topic))
            else:
                topic.name = found.name
                known.append(topic)
        group.topics = known

    def named(response: GroupResponse) -> GroupResponse:
        if response.error_code == ErrorCode.NONE:
            if group.topics is None:
                response.topics = _with_ids(image, response.topics)
            response.topics = [*response.topics, *unknown]
        return response

    return mapped(context.services.loop, context.services.group_coordinator.offset_fetch(group, require_stable), named)


def _set_ids(image: MetadataImage, group: Group) -> None:
    """Say which topics the names mean now."""
    for topic in group.topics or ():
        found = image.topics.by_name.get(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id


def _unknown_topic(topic: GroupTopic) -> GroupTopicResponse:
    partitions = [
        GroupPartitionResponse(
            partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNKNOWN_TOPIC_ID
        )
        for index in topic.partition_indexes
    ]
    return GroupTopicResponse(topic_id=topic.topic_id, partitions=partitions)


def _with_ids(image: MetadataImage, topics: list[GroupTopicResponse]) -> list[GroupTopicResponse]:
    kept = []
    for topic in topics:
        found = image.topics.by_name.get(topic.name)
        if found is not None:
            topic.topic_id = found.topic_id
            kept.append(topic)
    return kept


# -- one group, in the fields of before version 8 --------------------------------------------------------------------


def _group_of_old_request(request: OffsetFetchRequest) -> Group:
    topics = None
    if request.topics is not None:
        topics = [GroupTopic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics]
    return Group(group_id=request.group_id, topics=topics)


def _old_response(group: Group, fetched: GroupResponse, version: int) -> OffsetFetchResponse:
    if fetched.error_code != ErrorCode.NONE and version < GROUP_ERROR_SINCE:
        fetched.topics = _failed_topics(group, fetched.error_code)
    topics = [
        OffsetFetchResponse.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponse.OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in fetched.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=fetched.error_code)


def _failed_topics(group: Group, error: int) -> list[GroupTopicResponse]:
    return [
        GroupTopicResponse(
            name=topic.name,
            partitions=[
                GroupPartitionResponse(partition_index=index, committed_offset=-1, metadata="", error_code=error)
                for index in topic.partition_indexes
            ],
        )
        for topic in group.topics or []
    ]
