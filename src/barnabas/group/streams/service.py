"""The front of streams groups: requests in, responses out, errors turned into responses (control plane).

Source: Kafka class `GroupCoordinatorService` (`streamsGroupHeartbeat`, `streamsGroupDescribe`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.coordinator.future_steps import FutureMaker, answered, gathered
from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.group import GroupType
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.streams.groups import StreamsGroups
from barnabas.group.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatResult
from barnabas.group.streams.requests import check_heartbeat
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupDescribeResponse, StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from barnabas.group.group_shard import GroupCoordinatorShard

DescribedGroup = StreamsGroupDescribeResponse.DescribedGroup


def _streams(shard: GroupCoordinatorShard) -> StreamsGroups:
    part = shard.part(GroupType.STREAMS)
    assert isinstance(part, StreamsGroups), part
    return part


def heartbeat(
    coordinator: GroupCoordinator, loop: FutureMaker, beat: StreamsHeartbeat
) -> asyncio.Future[StreamsHeartbeatResult]:
    """Answer a member's heartbeat; errors are in the response."""

    def on_error(error: KafkaError) -> StreamsHeartbeatResult:
        response = StreamsGroupHeartbeatResponse(error_code=append_error(error), error_message=append_message(error))
        return StreamsHeartbeatResult(response)

    try:
        check_heartbeat(beat.request)
    except KafkaError as error:
        refused: asyncio.Future[StreamsHeartbeatResult] = loop.create_future()
        refused.set_result(on_error(error))
        return refused

    def operation(shard: GroupCoordinatorShard) -> CoordinatorResult[StreamsHeartbeatResult]:
        return _streams(shard).heartbeat(beat)

    return answered(loop, coordinator.write(beat.request.group_id, operation), lambda result: result, on_error)


def describe(
    coordinator: GroupCoordinator, loop: FutureMaker, group_ids: Sequence[str]
) -> asyncio.Future[list[DescribedGroup]]:
    """Describe streams groups, in the order asked; errors are in each group's answer."""

    def one(group_id: str) -> asyncio.Future[DescribedGroup]:
        if not group_id:
            refused: asyncio.Future[DescribedGroup] = loop.create_future()
            refused.set_result(DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID))
            return refused
        return answered(
            loop,
            coordinator.read(group_id, lambda shard: _streams(shard).describe(group_id)),
            lambda described: described,
            lambda error: DescribedGroup(group_id=group_id, error_code=append_error(error)),
        )

    return gathered(loop, [one(group_id) for group_id in group_ids], list)
