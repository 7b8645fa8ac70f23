"""The requests of classic groups: their checks, the operation on the group's shard, errors as responses.

JoinGroup and SyncGroup are answered when the rebalance is complete, by an operation of another member or a timer.

Source: Kafka class `GroupCoordinatorService` (`joinGroup`, `syncGroup`, `heartbeat`, `leaveGroup`, `describeGroups`).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordinator.append_error import append_error
from barnabas.group.classic.group import ClassicGroupState
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import GroupCoordinatorShard
from barnabas.group.parts import parts_of
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

DescribedGroup = DescribeGroupsResponse.DescribedGroup
NOT_FOUND_SINCE = 6
"""The DescribeGroups version from which a missing group has an error; before it the group is Dead."""


async def join_group(coordinator: GroupCoordinator, request: JoinGroupRequest, sender: Sender) -> JoinGroupResponse:
    """Join a group; the response comes when the rebalance is complete."""
    config = coordinator.config
    if not request.group_id:
        return JoinGroupResponse(member_id=request.member_id, error_code=ErrorCode.INVALID_GROUP_ID)
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        return JoinGroupResponse(member_id=request.member_id, error_code=ErrorCode.INVALID_SESSION_TIMEOUT)
    try:
        return await coordinator.write_and_wait(
            request.group_id, lambda shard, reply: shard.join_group(request, sender, reply)
        )
    except KafkaError as error:
        return JoinGroupResponse(error_code=append_error(error))


async def sync_group(coordinator: GroupCoordinator, request: SyncGroupRequest, sender: Sender) -> SyncGroupResponse:
    """Bring or fetch an assignment; the response comes when the leader's assignment is written."""
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await coordinator.write_and_wait(request.group_id, lambda shard, reply: shard.sync_group(request, reply))
    except KafkaError as error:
        return SyncGroupResponse(error_code=append_error(error))


async def heartbeat(coordinator: GroupCoordinator, request: HeartbeatRequest, sender: Sender) -> HeartbeatResponse:
    """Renew a member's session; while the coordinator loads the group it returns NONE, so that no member rejoins."""
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        return await coordinator.write(request.group_id, lambda shard: shard.heartbeat(request))
    except KafkaError as error:
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if loading else append_error(error))


async def leave_group(coordinator: GroupCoordinator, request: LeaveGroupRequest, sender: Sender) -> LeaveGroupResponse:
    """Remove members, with an outcome for each; many members in pieces."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    members, response = request.members, LeaveGroupResponse()
    async for part in parts_of(members):
        left = await _leave(coordinator, LeaveGroupRequest(group_id=request.group_id, members=part))
        if left.error_code != ErrorCode.NONE:
            return left
        response.members += left.members
    return response


async def _leave(coordinator: GroupCoordinator, request: LeaveGroupRequest) -> LeaveGroupResponse:
    try:
        return await coordinator.write(request.group_id, lambda shard: shard.leave_group(request))
    except KafkaError as error:
        code = append_error(error)
        if code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=code)
        members = [
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code
            )
            for member in request.members
        ]
        return LeaveGroupResponse(members=members)


async def describe(coordinator: GroupCoordinator, group_ids: Sequence[str], version: int) -> list[DescribedGroup]:
    """Describe groups in the order asked; an error is in its group's entry."""

    def one(shard: GroupCoordinatorShard, group_id: str) -> DescribedGroup:
        try:
            return shard.classic.describe(group_id)
        except KafkaError as error:
            missing = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
            if version >= NOT_FOUND_SINCE:
                missing.error_code, missing.error_message = error.code, error.message
            return missing

    return await coordinator.describe(group_ids, DescribedGroup, one, accepts_empty_id=True)
