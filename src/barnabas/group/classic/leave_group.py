"""LeaveGroup: members leave a classic group.

A request may name several members (v3, KIP-345): by member id, by both ids, or, for administrators, by instance id alone. Each has its own
outcome.

Source: Kafka class `GroupMetadataManager.classicGroupLeave`.
"""

from __future__ import annotations

import logging

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.group import UNKNOWN_MEMBER_ID, ClassicGroup, ClassicGroupState
from barnabas.group.classic.rebalance import NOTHING, Rebalance
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.rebalance_history import members_left, with_reason
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

logger = logging.getLogger(__name__)


class LeaveGroup:
    """Handles LeaveGroup for the groups of one shard."""

    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._rebalance = rebalance

    def handle(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        """Remove members, and rebalance if any was removed.

        Raises: KafkaError UNKNOWN_MEMBER_ID when there is no such group.
        """
        group = self._environment.find(request.group_id, ClassicGroup)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.is_in_state(ClassicGroupState.DEAD):
            return CoordinatorResult(LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        response = LeaveGroupResponse()
        before = dict(group.members)
        left = []
        for identity in request.members:
            error = self._leave_one(group, identity)
            if error is ErrorCode.NONE:
                left.append(identity.member_id or identity.group_instance_id or "")
            response.members.append(
                LeaveGroupResponse.MemberResponse(
                    member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
                )
            )
        after: CoordinatorResult[None] = NOTHING
        if left:
            if group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
                gone = next((member for member_id, member in before.items() if member_id not in group.members), None)
                after = self._rebalance.prepare_or_complete_join(group, members_left(left), gone)
            elif group.is_in_state(ClassicGroupState.PREPARING_REBALANCE):
                after = self._rebalance.maybe_complete_join(group)
        return CoordinatorResult(response, after.records, replay=after.replay, on_append=after.on_append)

    def _leave_one(self, group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == UNKNOWN_MEMBER_ID:
            current = None if instance_id is None else group.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = current
        elif group.is_pending_member(member_id):
            group.remove(member_id)
            self._rebalance.cancel_heartbeat(group, member_id)
            return ErrorCode.NONE
        else:
            try:
                group.validate_member(member_id, instance_id)
            except KafkaError as error:
                return error.code
        logger.info("group %s: member %s left%s", group.group_id, member_id, with_reason(identity.reason))
        self._rebalance.drop_member(group, member_id)
        return ErrorCode.NONE
