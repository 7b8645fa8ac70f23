"""The requests about groups of every type: their offsets, listing, deletion.

Source: Kafka class `GroupCoordinatorService` (`commitOffsets`, `fetchOffsets`, `deleteOffsets`, `listGroups`, `deleteGroups`).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from barnabas.coordinator.append_error import append_error
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.parts import extend_topics, is_one_part, parts
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.steps import gather
from barnabas.turns import ELEMENT, RECORD, pace

DeletedGroup = DeleteGroupsResponse.DeletableGroupResult
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
ListedGroup = ListGroupsResponse.ListedGroup

SMALLEST_RECORD_BYTES = 42
"""Of a committed offset: the record's own fields 7, its key 11, its value 24."""


async def offset_commit(
    coordinator: GroupCoordinator, request: OffsetCommitRequest, version: int
) -> OffsetCommitResponse:
    """Commit offsets of topics that exist; an error of the whole request becomes that of each partition.

    A long commit is several operations. One that no batch can hold is rejected before the first.
    """
    if is_one_part(request.topics):
        return await _commit(coordinator, request, version)
    if not fits_batch(coordinator, request.topics):
        return await _offset_commit_error(request, append_error(KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)))
    response = OffsetCommitResponse()
    part = copy.copy(request)
    async for part.topics in parts(request.topics):
        extend_topics(response.topics, (await _commit(coordinator, part, version)).topics)
    return response


async def _commit(coordinator: GroupCoordinator, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
    try:
        return await coordinator.write(request.group_id, lambda shard: shard.commit_offsets(request, version))
    except KafkaError as error:
        return await _offset_commit_error(request, append_error(error))


def fits_batch(coordinator: GroupCoordinator, topics: list[Any]) -> bool:
    """Return False if the offsets of the topics' partitions can be in no batch of the coordinator's topic."""
    config = coordinator.config
    partitions = sum(map(len, map(attrgetter("partitions"), topics)))
    return partitions * SMALLEST_RECORD_BYTES <= config.max_batch_bytes or bool(config.offsets_topic_compression_codec)


async def offset_fetch(
    coordinator: GroupCoordinator, request: OffsetFetchRequest.OffsetFetchRequestGroup, require_stable: bool
) -> FetchedGroup:
    """Return the committed offsets of one group."""
    try:
        return await coordinator.read(request.group_id, lambda shard: shard.fetch_offsets(request, require_stable))
    except KafkaError as error:
        code = append_error(error)
        if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            code = ErrorCode.NOT_COORDINATOR  # Consumers before 3.9 do not know the other as retriable here.
        return FetchedGroup(group_id=request.group_id, error_code=code)


async def offset_delete(coordinator: GroupCoordinator, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete the committed offsets of partitions that no member consumes."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await coordinator.write(request.group_id, lambda shard: shard.delete_offsets(request))
    except KafkaError as error:
        return OffsetDeleteResponse(error_code=append_error(error))


async def list_groups(coordinator: GroupCoordinator, request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups of this broker, by state and type."""
    states = await _distinct(request.states_filter)
    types = await _distinct(request.types_filter)

    async def one(listed: asyncio.Future[list[ListedGroup]]) -> list[ListedGroup]:
        try:
            return await listed
        except KafkaError as error:
            if error.code is ErrorCode.NOT_COORDINATOR:
                return []  # Another broker lists them.
            raise

    shards = coordinator.read_all(lambda shard: shard.list_groups(states, types))
    try:
        listed = await gather(map(one, shards), coordinator.loop)
    except KafkaError as error:
        return ListGroupsResponse(error_code=append_error(error))
    return ListGroupsResponse(groups=[group for groups in listed for group in groups])


async def _distinct(names: Sequence[str]) -> set[str]:
    """Return the different names of a filter, prepared for the comparison."""
    found: set[str] = set()
    for name in names:
        await pace(RECORD)
        found.add(name.lower().strip())
    return found


async def delete_groups(coordinator: GroupCoordinator, group_ids: Sequence[str]) -> list[DeletedGroup]:
    """Delete groups with their offsets, in the order asked; a group that is named twice is deleted once."""

    async def one(group_id: str) -> DeletedGroup:
        try:
            code = await coordinator.write(group_id, lambda shard: shard.delete_group(group_id))
        except KafkaError as error:
            code = append_error(error)
        return DeletedGroup(group_id=group_id, error_code=code)

    different: dict[str, None] = {}
    for group_id in group_ids:
        await pace(RECORD)
        different[group_id] = None
    return await gather(map(one, different), coordinator.loop)


async def _offset_commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return the same error for every partition of a commit."""
    response = OffsetCommitResponse()
    for topic in request.topics:
        failed = OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(failed)
        for partition in topic.partitions:
            await pace(ELEMENT)
            failed.partitions.append(
                OffsetCommitResponse.OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )
    return response
