"""ClassicGroups: the groups of the classic protocol in one shard (control plane).

It joins the parts of the protocol (`JoinGroup`, `SyncGroup`, `GroupMembership`, `Rebalance`) over the shard's groups, and moves their
state in `replay`.

On load every member is given a session timeout from now; on unload every member that waits is told to find the new coordinator.

Source: Kafka class `GroupMetadataManager`, its classic part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.join_group import JoinGroup, Joining
from barnabas.group.classic.member import ClassicGroupMember, SyncReply
from barnabas.group.classic.membership import GroupMembership
from barnabas.group.classic.rebalance import Rebalance, holdings_of
from barnabas.group.classic.records import GROUP_METADATA
from barnabas.group.classic.sync_group import SyncGroup
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeGroupsResponse,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


class ClassicGroups:
    """One shard's groups of the classic protocol."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self.rebalance = Rebalance(environment)
        self._join = JoinGroup(environment, self.rebalance)
        self._sync = SyncGroup(environment, self.rebalance)
        self._membership = GroupMembership(environment, self.rebalance)
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {GROUP_METADATA: self._replay_group}

    def __repr__(self) -> str:
        return f"ClassicGroups({self._environment.partition})"

    # -- requests ----------------------------------------------------------------------------------------------------

    def join_group(self, joining: Joining) -> CoordinatorResult[None]:
        return self._join.handle(joining)

    def sync_group(self, request: SyncGroupRequest, reply: SyncReply) -> CoordinatorResult[None]:
        return self._sync.handle(request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> CoordinatorResult[HeartbeatResponse]:
        return self._membership.heartbeat(request)

    def leave_group(self, request: LeaveGroupRequest) -> CoordinatorResult[LeaveGroupResponse]:
        return self._membership.leave(request)

    def committed_by(self, group: ClassicGroup, member_id: str) -> None:
        """A member has committed offsets, so it is alive."""
        member = group.members.get(member_id)
        if member is not None and group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
            self.rebalance.reschedule_heartbeat(group, member)

    def describe(self, group: ClassicGroup) -> DescribeGroupsResponse.DescribedGroup:
        """For DescribeGroups: metadata and assignments of a stable group only."""
        stable = group.is_in_state(ClassicGroupState.STABLE)
        protocol = group.protocol_name if stable else None
        return DescribeGroupsResponse.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in group.members.values()],
        )

    # -- the log -----------------------------------------------------------------------------------------------------

    def _replay_group(self, record: CoordinatorRecord) -> None:
        groups, group_id = self._environment.groups, record.key.group
        previous = self._environment.find(group_id, ClassicGroup)
        if previous is not None:
            self.rebalance.cancel_all(previous)
            del groups[group_id]
        if record.value is not None:
            groups[group_id] = _loaded_group(group_id, record.value)

    def on_loaded(self, group: Group) -> None:
        """Watch the members that were loaded."""
        assert isinstance(group, ClassicGroup), group
        self.rebalance.note_held(group.group_id, holdings_of(group))
        for member in group.members.values():
            self.rebalance.reschedule_heartbeat(group, member)
        if len(group.members) > self._environment.config.group_max_size:
            self.rebalance.prepare(group, f"{len(group.members)} members are more than group.max.size")

    def on_unloaded(self, group: Group) -> None:
        """Answer every member that waits: the coordinator is elsewhere now."""
        assert isinstance(group, ClassicGroup), group
        group.transition_to(ClassicGroupState.DEAD, self._environment.now_ms())
        for member in group.members.values():
            gone = ErrorCode.NOT_COORDINATOR
            group.complete_join(member, JoinGroupResponse(member_id=member.member_id, error_code=gone))
            group.complete_sync(member, SyncGroupResponse(error_code=gone))


def _loaded_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record shows: stable with members, else empty."""
    group = ClassicGroup(
        group_id,
        now_ms=value.current_state_timestamp,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        group.add(
            ClassicGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 has no rebalance timeout; the session timeout stands for both.
                rebalance_timeout_ms=member.session_timeout
                if member.rebalance_timeout == -1
                else member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols={value.protocol or "": member.subscription},
                assignment=member.assignment,
            )
        )
    group.subscribed_topics = group.compute_subscribed_topics()
    return group
