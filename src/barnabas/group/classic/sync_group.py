"""SyncGroup: the leader sends the assignment, each member gets its part.

A follower waits until the leader's assignment is written to the log; then all are answered and the group is stable. A SyncGroup
in a stable group is answered immediately (the response was lost, or the member is late).

Order of the checks: the member (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID), the generation, the protocol type and name (v5, KIP-559).

Source: Kafka class `GroupMetadataManager.classicGroupSync`.
"""

from __future__ import annotations

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.member import SyncReply
from barnabas.group.classic.ordered_growth import ClassicGrowth
from barnabas.group.classic.rebalance import NOTHING, Rebalance
from barnabas.group.classic.records import group_metadata_record
from barnabas.group.group_environment import GroupEnvironment
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import SyncGroupRequest, SyncGroupResponse


class SyncGroup:
    """Handles SyncGroup for the groups of one shard."""

    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance, growth: ClassicGrowth) -> None:
        self._environment = environment
        self._rebalance = rebalance
        self._growth = growth
        self._now_ms = environment.now_ms

    def handle(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        """Handle a request; `reply` is called now or when the leader's assignment is written."""
        group = self._environment.find(request.group_id, ClassicGroup)
        if group is None or group.is_empty:
            reply(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
            return NOTHING
        try:
            _validate(group, request)
        except KafkaError as error:
            reply(SyncGroupResponse(error_code=error.code))
            return NOTHING
        if group.is_in_state(ClassicGroupState.PREPARING_REBALANCE):
            reply(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            return NOTHING
        self._rebalance.sync_received(group, request.member_id)
        member = group.members[request.member_id]
        if group.is_in_state(ClassicGroupState.STABLE):
            reply(
                SyncGroupResponse(
                    protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
                )
            )
            return NOTHING
        assert group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE), group
        member.awaiting_sync = reply
        if group.is_leader(request.member_id):
            return self._write_assignment(group, request)
        return NOTHING

    def _write_assignment(self, group: ClassicGroup, request: SyncGroupRequest) -> CoordinatorResult[None]:
        """Write the generation without held partitions; members that the leader left out get an empty assignment."""
        given = {part.member_id: part.assignment for part in request.assignments}
        assignments = self._growth.without_held(
            group, {member_id: given.get(member_id, b"") for member_id in group.members}
        )
        self._growth.watch(group)

        def on_append(error: KafkaError | None) -> None:
            # A join or a timeout may have started the next rebalance before the record was committed.
            still = group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE)
            if not still or request.generation_id != group.generation_id:
                return
            if error is None:
                self._rebalance.propagate_assignment(group, assignments)
                group.transition_to(ClassicGroupState.STABLE, self._now_ms())
            else:
                code = append_error(error)
                self._rebalance.propagate_error(group, code)
                self._rebalance.prepare_or_complete_join(group, f"the assignment is not written: {error}")

        return CoordinatorResult(None, [group_metadata_record(group, assignments)], replay=False, on_append=on_append)


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.is_in_state(ClassicGroupState.DEAD):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(requested: str | None, present: str | None) -> bool:
    return requested is not None and present is not None and requested != present
