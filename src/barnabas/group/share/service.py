"""The front of share groups: requests in, responses out, and the steps between a group and the share coordinator (control plane).

    heartbeat        group: note partitions ──► share coordinator: begin their state ──► group: note that it is done
    alter offsets    the same, with offsets given
    delete offsets   group: note ──► share coordinator: delete ──► group: note
    delete a group   the states first, then the group as any other
    describe         group: which partitions ──► share coordinator: offsets and counts ──► log: the end, for the lag

A heartbeat does not wait for the share coordinator: its member has the partitions with the next one.

Source: Kafka class `GroupCoordinatorService` (`shareGroup*`); KIP-932, KIP-1226 (lag).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.future_steps import FutureMaker, after_all, answered, gathered, when_done
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.share import offsets
from barnabas.group.share.described import (
    UNINITIALIZED,
    DescribedOffsets,
    OffsetsOfGroup,
    StateKeeper,
    share_part,
)
from barnabas.group.share.group import LEAVE_EPOCH
from barnabas.group.share.groups import HeartbeatOutcome
from barnabas.group.share.partitions import PartitionIds
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    pass

__all__ = ["ShareGroupService"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

DescribedGroup = ShareGroupDescribeResponse.DescribedGroup


class ShareGroupService:
    """Share groups of one broker.

    Args:
        end_offset: the high watermark of a partition by topic name; raises KafkaError.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        keeper: StateKeeper,
        *,
        loop: FutureMaker,
        image: Callable[[], MetadataImage],
        end_offset: Callable[[str, int], int],
    ) -> None:
        self._coordinator = coordinator
        self._keeper = keeper
        self._loop = loop
        self._image = image
        self._described = DescribedOffsets(coordinator, keeper, loop=loop, image=image, end_offset=end_offset)

    def __repr__(self) -> str:
        return f"<ShareGroupService {self._coordinator!r}>"

    # -- members -----------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> asyncio.Future[ShareGroupHeartbeatResponse]:
        """Answer a member's heartbeat; errors are in the response."""

        def on_error(error: KafkaError) -> ShareGroupHeartbeatResponse:
            return ShareGroupHeartbeatResponse(error_code=append_error(error), error_message=append_message(error))

        try:
            _check_heartbeat(request)
        except KafkaError as error:
            return self._done(on_error(error))

        def on_outcome(outcome: HeartbeatOutcome) -> ShareGroupHeartbeatResponse:
            if outcome.initialization is not None:
                state_epoch, partitions = outcome.initialization
                starts = {
                    topic_id: dict.fromkeys(sorted(parts), UNINITIALIZED) for topic_id, parts in partitions.items()
                }
                self._begin(request.group_id, state_epoch, starts)
            return outcome.response

        future = self._coordinator.write(
            request.group_id, lambda shard: share_part(shard).heartbeat(request, client_id, client_host)
        )
        return answered(self._loop, future, on_outcome, on_error)

    def _begin(
        self, group_id: str, state_epoch: int, starts: Mapping[bytes, Mapping[int, int]]
    ) -> asyncio.Future[dict[tuple[bytes, int], KafkaError | None]]:
        """Begin partitions' states with the share coordinator, and note in the group which have been."""
        calls = {
            (topic_id, partition): self._keeper.initialize_state(group_id, topic_id, partition, state_epoch, start)
            for topic_id, of_topic in starts.items()
            for partition, start in of_topic.items()
        }
        finished: asyncio.Future[dict[tuple[bytes, int], KafkaError | None]] = self._loop.create_future()

        def on_settled(outcome: dict[tuple[bytes, int], KafkaError | None]) -> None:
            begun = [key for key, error in outcome.items() if error is None]
            failed = [key for key, error in outcome.items() if error is not None]
            writes = []
            if begun:
                writes.append(
                    self._coordinator.write(
                        group_id, lambda shard: share_part(shard).initialized(group_id, _ids(begun))
                    )
                )
            if failed:
                logger.warning("share group %s: %d partitions could not be initialized", group_id, len(failed))
                writes.append(
                    self._coordinator.write(
                        group_id, lambda shard: share_part(shard).uninitialized(group_id, _ids(failed))
                    )
                )
            after_all(writes, lambda: finished.set_result(outcome))

        _settle(calls, on_settled)
        return finished

    def describe(self, group_ids: Sequence[str]) -> asyncio.Future[list[DescribedGroup]]:
        """Describe groups, in the order asked; errors are in each group's answer."""

        def one(group_id: str) -> asyncio.Future[DescribedGroup]:
            if not group_id:
                return self._done(DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
            return answered(
                self._loop,
                self._coordinator.read(group_id, lambda shard: share_part(shard).describe(group_id)),
                lambda described: described,
                lambda error: DescribedGroup(
                    group_id=group_id,
                    error_code=append_error(error),
                    error_message=error.message if error.code is ErrorCode.GROUP_ID_NOT_FOUND else None,
                ),
            )

        return gathered(self._loop, [one(group_id) for group_id in group_ids], list)

    # -- offsets -----------------------------------------------------------------------------------------------------

    def describe_offsets(
        self, request: DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    ) -> asyncio.Future[OffsetsOfGroup]:
        """Start offsets and lags of partitions, or of all that the group has; errors are in the answer."""
        return self._described.of(request)

    def alter_offsets(self, group_id: str, topics: Iterable[Any]) -> asyncio.Future[AlterShareGroupOffsetsResponse]:
        """Begin partitions of an empty group at other offsets; errors are in the response."""
        if not group_id:
            return self._done(_altered_error(ErrorCode.INVALID_GROUP_ID))
        topics = list(topics)
        answer: asyncio.Future[AlterShareGroupOffsetsResponse] = self._loop.create_future()

        def on_noted(done: asyncio.Future[offsets.Alteration]) -> None:
            error = done.exception()
            if isinstance(error, KafkaError):
                answer.set_result(_altered_error(append_error(error), append_message(error)))
                return
            alteration = done.result()

            def on_begun(begun: asyncio.Future[dict[tuple[bytes, int], KafkaError | None]]) -> None:
                for topic in alteration.topics:
                    for partition in topic.partitions:
                        failed = begun.result().get((bytes(topic.topic_id), partition.partition_index))
                        if failed is not None:
                            partition.error_code = failed.code
                            partition.error_message = failed.message
                answer.set_result(AlterShareGroupOffsetsResponse(responses=alteration.topics))

            when_done(self._begin(group_id, alteration.state_epoch, alteration.offsets), on_begun)

        when_done(
            self._coordinator.write(group_id, lambda shard: offsets.alter(shard.environment, group_id, topics)),
            on_noted,
        )
        return answer

    def delete_offsets(self, group_id: str, topics: Sequence[str]) -> asyncio.Future[DeleteShareGroupOffsetsResponse]:
        """Delete what an empty group has of topics; errors are in the response."""
        if not group_id:
            return self._done(_deleted_error(ErrorCode.INVALID_GROUP_ID))
        answer: asyncio.Future[DeleteShareGroupOffsetsResponse] = self._loop.create_future()

        def on_noted(done: asyncio.Future[offsets.Deletion]) -> None:
            error = done.exception()
            if isinstance(error, KafkaError):
                answer.set_result(_deleted_error(append_error(error), append_message(error)))
                return
            refused, partitions = done.result()

            def on_deleted(failures: dict[bytes, KafkaError | None]) -> None:
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
                gone = [topic_id for topic_id, failure in failures.items() if failure is None]
                written = [
                    self._coordinator.write(
                        group_id, lambda shard: offsets.complete_delete(shard.environment, group_id, gone)
                    )
                ]
                response = DeleteShareGroupOffsetsResponse(responses=[*results, *refused])
                after_all(written if gone else (), lambda: answer.set_result(response))

            self._delete(group_id, partitions, on_deleted)

        when_done(
            self._coordinator.write(group_id, lambda shard: offsets.delete(shard.environment, group_id, topics)),
            on_noted,
        )
        return answer

    def _delete(
        self,
        group_id: str,
        partitions: PartitionIds,
        then: Callable[[dict[bytes, KafkaError | None]], None],
    ) -> None:
        """Delete states; tells each topic's first error."""
        calls = {
            (topic_id, index): self._keeper.delete_state(group_id, topic_id, index)
            for topic_id, indexes in partitions.items()
            for index in sorted(indexes)
        }

        def on_settled(outcome: dict[tuple[bytes, int], KafkaError | None]) -> None:
            failures: dict[bytes, KafkaError | None] = dict.fromkeys(partitions)
            for (topic_id, _), error in outcome.items():
                failures[topic_id] = failures[topic_id] or error
            then(failures)

        _settle(calls, on_settled)

    def delete_states(self, group_ids: Iterable[str]) -> asyncio.Future[dict[str, ErrorCode]]:
        """Before groups are deleted: delete the states of those that are share groups. The answer names those that failed."""

        def one(group_id: str) -> asyncio.Future[tuple[str, ErrorCode]]:
            answer: asyncio.Future[tuple[str, ErrorCode]] = self._loop.create_future()

            def on_noted(done: asyncio.Future[PartitionIds | None]) -> None:
                error = done.exception()
                if isinstance(error, KafkaError):
                    answer.set_result((group_id, append_error(error)))
                    return
                partitions = done.result()

                def on_deleted(failures: dict[bytes, KafkaError | None]) -> None:
                    failed = next((failure for failure in failures.values() if failure is not None), None)
                    answer.set_result((group_id, ErrorCode.NONE if failed is None else failed.code))

                self._delete(group_id, partitions or {}, on_deleted)

            when_done(
                self._coordinator.write(group_id, lambda shard: offsets.delete_all(shard.environment, group_id)),
                on_noted,
            )
            return answer

        return gathered(
            self._loop,
            [one(group_id) for group_id in dict.fromkeys(group_ids)],
            lambda outcomes: {group_id: code for group_id, code in outcomes if code is not ErrorCode.NONE},
        )

    def _done(self, response: T) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        future.set_result(response)
        return future


def _check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if value is not None and not value.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def _ids(keys: Iterable[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    by_topic: dict[bytes, set[int]] = {}
    for topic_id, partition in keys:
        by_topic.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}


def _settle(
    calls: Mapping[tuple[bytes, int], asyncio.Future[None]],
    then: Callable[[dict[tuple[bytes, int], KafkaError | None]], None],
) -> None:
    """Go on with the errors of calls that fail with KafkaError only."""

    def done() -> None:
        outcome: dict[tuple[bytes, int], KafkaError | None] = {}
        for key, call in calls.items():
            error = call.exception()
            if error is not None and not isinstance(error, KafkaError):
                raise error
            outcome[key] = error
        then(outcome)

    after_all(calls.values(), done)


def _altered_error(error: ErrorCode, message: str | None = None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=message or error.default_message)


def _deleted_error(error: ErrorCode, message: str | None = None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=message or error.default_message)
