"""ShareGroupService: the front of share groups, and the steps between a group and the share coordinator.

    heartbeat        group: record partitions ──► share coordinator: initialize their states ──► group: record that it is done
    alter offsets    the same, with given offsets
    delete offsets   group: record ──► share coordinator: delete ──► group: record
    delete a group   the states first, then the group like any other
    describe         group: which partitions ──► share coordinator: offsets and counts ──► log: the end, for the lag

A heartbeat does not wait for the share coordinator: its member gets the partitions with the next heartbeat. Every sequence continues to
its end when the client closes its connection, so that the group and the share coordinator agree.

Source: Kafka class `GroupCoordinatorService` (`shareGroup*`); KIP-932, KIP-1226 (lag).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.epoch_group import LEAVE_EPOCH
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import GroupCoordinatorShard
from barnabas.group.request_checks import check_not_blank, invalid_request
from barnabas.group.sender import Sender
from barnabas.group.share import offsets
from barnabas.group.share.described import UNINITIALIZED, DescribedOffsets, EndOffset, OffsetsOfGroup, share_part
from barnabas.group.share.partitions import PartitionIds
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.share.persister import ShareStates
from barnabas.share.state_records import SharePartitionKey
from barnabas.steps import Loop, gather, in_background, shielded
from barnabas.turns import ELEMENT, RECORD, pace

__all__ = ["ShareGroupService"]

logger = logging.getLogger(__name__)

DescribedGroup = ShareGroupDescribeResponse.DescribedGroup
AlteredTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic


class ShareGroupService:
    """Share groups of one broker.

    Args:
        end_offset: returns the high watermark of a partition by topic name; raises KafkaError.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        persister: ShareStates,
        *,
        loop: Loop,
        image: Callable[[], MetadataImage],
        end_offset: EndOffset,
    ) -> None:
        self._coordinator = coordinator
        self._persister = persister
        self._loop = loop
        self._image = image
        self._described = DescribedOffsets(coordinator, persister, loop=loop, image=image, end_offset=end_offset)

    def __repr__(self) -> str:
        return f"<ShareGroupService {self._coordinator!r}>"

    async def heartbeat(self, request: ShareGroupHeartbeatRequest, sender: Sender) -> ShareGroupHeartbeatResponse:
        """Join, stay in or leave a group; errors are in the response."""
        return await shielded(self._heartbeat(request, sender), self._loop)

    async def _heartbeat(self, request: ShareGroupHeartbeatRequest, sender: Sender) -> ShareGroupHeartbeatResponse:
        try:
            _check_heartbeat(request)
            outcome = await self._coordinator.write(
                request.group_id, lambda shard: share_part(shard).heartbeat(request, sender)
            )
        except KafkaError as error:
            return ShareGroupHeartbeatResponse(error_code=append_error(error), error_message=append_message(error))
        if outcome.initialization is not None:
            state_epoch, partitions = outcome.initialization
            starts = {topic_id: dict.fromkeys(sorted(parts), UNINITIALIZED) for topic_id, parts in partitions.items()}
            in_background(self._initialize(request.group_id, state_epoch, starts), self._loop)
        return outcome.response

    async def _initialize(
        self, group_id: str, state_epoch: int, starts: Mapping[bytes, Mapping[int, int]]
    ) -> dict[SharePartitionKey, KafkaError | None]:
        """Initialize states in the share coordinator, and record in the group which succeeded and which failed.

        Returns: an error or None for each share partition.
        """
        offsets_by_key = {
            SharePartitionKey(group_id, topic_id, partition): start
            for topic_id, of_topic in starts.items()
            for partition, start in of_topic.items()
        }
        errors = await gather(
            (_error_of(self._persister.initialize(key, state_epoch, start)) for key, start in offsets_by_key.items()),
            self._loop,
        )
        outcome = dict(zip(offsets_by_key, errors, strict=True))
        done = [key for key, error in outcome.items() if error is None]
        failed = [key for key, error in outcome.items() if error is not None]
        if done:
            await self._record(group_id, lambda shard: share_part(shard).initialized(group_id, _partition_ids(done)))
        if failed:
            logger.warning("share group %s: %d partitions could not be initialized", group_id, len(failed))
            await self._record(
                group_id, lambda shard: share_part(shard).uninitialized(group_id, _partition_ids(failed))
            )
        return outcome

    async def _record(
        self, group_id: str, operation: Callable[[GroupCoordinatorShard], CoordinatorResult[None]]
    ) -> None:
        """Record in the group what the share coordinator has done; if that fails, a later request does it again."""
        try:
            await self._coordinator.write(group_id, operation)
        except KafkaError as error:
            logger.warning("share group %s: the share coordinator's outcome was not recorded: %s", group_id, error)

    async def describe(self, group_ids: Sequence[str]) -> list[DescribedGroup]:
        """Describe groups, in the order of the request; errors are in each group's answer."""
        return await gather((self._describe(group_id) for group_id in group_ids), self._loop)

    async def _describe(self, group_id: str) -> DescribedGroup:
        if not group_id:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            return await self._coordinator.read(group_id, lambda shard: share_part(shard).describe(group_id))
        except KafkaError as error:
            message = error.message if error.code is ErrorCode.GROUP_ID_NOT_FOUND else None
            return DescribedGroup(group_id=group_id, error_code=append_error(error), error_message=message)

    async def describe_offsets(
        self, request: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> OffsetsOfGroup:
        """Return start offsets and lags of the named partitions, or of all that the group has; errors are in the answer."""
        return await self._described.of(request)

    async def alter_offsets(self, group_id: str, topics: Sequence[AlteredTopic]) -> AlterShareGroupOffsetsResponse:
        """Start partitions of an empty group at other offsets; errors are in the response."""
        return await shielded(self._alter_offsets(group_id, topics), self._loop)

    async def _alter_offsets(self, group_id: str, topics: Sequence[AlteredTopic]) -> AlterShareGroupOffsetsResponse:
        altered, starts = await self._altered(topics)
        try:
            _check_group_id(group_id)
            state_epoch = await self._coordinator.write(
                group_id, lambda shard: offsets.alter(shard.environment, group_id, starts)
            )
        except KafkaError as error:
            code = append_error(error)
            return AlterShareGroupOffsetsResponse(
                error_code=code, error_message=append_message(error) or code.default_message
            )
        outcome = await self._initialize(group_id, state_epoch, starts)
        for topic in altered:
            await pace(ELEMENT)
            for partition in topic.partitions:
                await pace(ELEMENT)
                key = SharePartitionKey(group_id, bytes(topic.topic_id), partition.partition_index)
                if (failure := outcome.get(key)) is not None:
                    partition.error_code = failure.code
                    partition.error_message = failure.message
        return AlterShareGroupOffsetsResponse(responses=altered)

    async def _altered(
        self, topics: Sequence[AlteredTopic]
    ) -> tuple[list[offsets.AlteredTopic], dict[bytes, dict[int, int]]]:
        """Return the response so far, and the new offsets of the partitions that exist, by topic id."""
        by_name = self._image().topics.by_name
        altered = []
        starts: dict[bytes, dict[int, int]] = {}
        for topic in topics:
            await pace(ELEMENT)
            known = by_name.get(topic.topic_name)
            answer = offsets.AlteredTopic(topic_name=topic.topic_name)
            altered.append(answer)
            of_topic: dict[int, int] = {}
            if known is not None:
                answer.topic_id = known.topic_id
                of_topic = starts.setdefault(bytes(known.topic_id), of_topic)
            for partition in topic.partitions:
                await pace(ELEMENT)
                index = partition.partition_index
                answered = offsets.AlteredPartition(partition_index=index)
                if known is None or index not in known.partitions:
                    answered.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    answered.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.default_message
                else:
                    of_topic[index] = partition.start_offset
                answer.partitions.append(answered)
        return altered, starts

    async def delete_offsets(self, group_id: str, topics: Sequence[str]) -> DeleteShareGroupOffsetsResponse:
        """Delete an empty group's offsets in topics; errors are in the response."""
        return await shielded(self._delete_offsets(group_id, topics), self._loop)

    async def _delete_offsets(self, group_id: str, topics: Sequence[str]) -> DeleteShareGroupOffsetsResponse:
        by_name = self._image().topics.by_name
        known: dict[str, None] = {}
        for name in topics:
            await pace(RECORD)
            if name in by_name:
                known[name] = None
        try:
            _check_group_id(group_id)
            deletion = await self._coordinator.write(
                group_id, lambda shard: offsets.delete(shard.environment, group_id, known)
            )
        except KafkaError as error:
            code = append_error(error)
            return DeleteShareGroupOffsetsResponse(
                error_code=code, error_message=append_message(error) or code.default_message
            )
        failures = await self._delete_states_of(group_id, deletion.partitions)
        names = self._image().topics.by_id
        results = []
        for topic_id, failure in failures.items():
            result = offsets.DeletedTopic(
                topic_id=topic_id, topic_name=names[topic_id].name if topic_id in names else ""
            )
            if failure is not None:
                result.error_code = failure.code
                result.error_message = failure.code.default_message
            results.append(result)
        deleted = [topic_id for topic_id, failure in failures.items() if failure is None]
        if deleted:
            await self._record(group_id, lambda shard: offsets.complete_delete(shard.environment, group_id, deleted))
        rejected = {topic.topic_name: topic for topic in deletion.rejected}
        for name in topics:
            await pace(ELEMENT)
            if name not in known:
                results.append(offsets.unknown_topic(name))
            elif name in rejected:
                results.append(rejected.pop(name))
        return DeleteShareGroupOffsetsResponse(responses=results)

    async def _delete_states_of(self, group_id: str, partitions: PartitionIds) -> dict[bytes, KafkaError | None]:
        """Delete states; returns each topic's first error."""
        keys = [
            SharePartitionKey(group_id, topic_id, index)
            for topic_id, indexes in partitions.items()
            for index in sorted(indexes)
        ]
        errors = await gather((_error_of(self._persister.delete(key)) for key in keys), self._loop)
        failures: dict[bytes, KafkaError | None] = dict.fromkeys(partitions)
        for key, error in zip(keys, errors, strict=True):
            failures[key.topic_id] = failures[key.topic_id] or error
        return failures

    async def delete_states(self, group_ids: Sequence[str]) -> dict[str, ErrorCode]:
        """Delete the states of those groups that are share groups, before the groups are deleted.

        Returns: the error of each group whose states could not be deleted.
        """
        names: dict[str, None] = {}
        for group_id in group_ids:
            await pace(RECORD)
            names[group_id] = None
        codes = await gather((shielded(self._delete_states(group_id), self._loop) for group_id in names), self._loop)
        failed: dict[str, ErrorCode] = {}
        answers = zip(names, codes, strict=True)
        for group_id, code in answers:
            await pace(ELEMENT)
            if code is not ErrorCode.NONE:
                failed[group_id] = code
        return failed

    async def _delete_states(self, group_id: str) -> ErrorCode:
        try:
            partitions = await self._coordinator.write(
                group_id, lambda shard: offsets.delete_all(shard.environment, group_id)
            )
        except KafkaError as error:
            return append_error(error)
        failures = await self._delete_states_of(group_id, partitions or {})
        return next((failure.code for failure in failures.values() if failure is not None), ErrorCode.NONE)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def _check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    check_not_blank(request.member_id, "MemberId")
    check_not_blank(request.group_id, "GroupId")
    check_not_blank(request.rack_id, "RackId")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise invalid_request("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")


def _partition_ids(keys: Iterable[SharePartitionKey]) -> dict[bytes, frozenset[int]]:
    by_topic: dict[bytes, set[int]] = {}
    for key in keys:
        by_topic.setdefault(key.topic_id, set()).add(key.partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}


async def _error_of(call: Coroutine[Any, Any, None]) -> KafkaError | None:
    try:
        await call
    except KafkaError as error:
        return error
    return None
