"""Heartbeat: a member of a classic group stays alive, and learns of a rebalance (REBALANCE_IN_PROGRESS).

Source: Kafka class `GroupMetadataManager.classicGroupHeartbeat`.
"""

from __future__ import annotations

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.rebalance import Rebalance
from barnabas.group.group_environment import GroupEnvironment
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import HeartbeatRequest, HeartbeatResponse


class Heartbeat:
    """Handles Heartbeat for the groups of one shard."""

    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._rebalance = rebalance

    def handle(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        """Renew a member's session.

        Raises: KafkaError COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
        """
        group = self._environment.find(request.group_id, ClassicGroup)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.is_in_state(ClassicGroupState.DEAD):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.validate_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        # While the group completes its rebalance a heartbeat is fine: members send them once they have the join's answer.
        self._rebalance.reschedule_heartbeat(group, group.members[request.member_id])
        preparing = group.is_in_state(ClassicGroupState.PREPARING_REBALANCE)
        error = ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE
        return CoordinatorResult(HeartbeatResponse(error_code=error))
