"""ClassicGroups: the groups of the classic protocol in one shard.

It joins the parts of the protocol (`JoinGroup`, `SyncGroup`, `Heartbeat`, `LeaveGroup`, `Rebalance`), and moves the state of the groups in
`replay`.

On load every member gets a session from now; on unload every request that waits is answered with NOT_COORDINATOR.

Source: Kafka class `GroupMetadataManager`, its classic part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.classic.heartbeat import Heartbeat
from barnabas.group.classic.join_group import JoinGroup
from barnabas.group.classic.leave_group import LeaveGroup
from barnabas.group.classic.member import ClassicGroupMember
from barnabas.group.classic.ordered_growth import ClassicGrowth
from barnabas.group.classic.rebalance import Rebalance, holdings_of
from barnabas.group.classic.records import GROUP_METADATA
from barnabas.group.classic.sync_group import SyncGroup
from barnabas.group.group import Group
from barnabas.group.group_environment import GroupEnvironment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeGroupsResponse,
    GroupMetadataValue,
    JoinGroupResponse,
    SyncGroupResponse,
)


class ClassicGroups:
    """One shard's groups of the classic protocol."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self.rebalance = Rebalance(environment)
        self.growth = ClassicGrowth(environment, self.rebalance)
        self.join_group = JoinGroup(environment, self.rebalance).handle
        self.sync_group = SyncGroup(environment, self.rebalance, self.growth).handle
        self.heartbeat = Heartbeat(environment, self.rebalance).handle
        self.leave_group = LeaveGroup(environment, self.rebalance).handle
        self.replay_by_type: Mapping[int, Callable[[CoordinatorRecord], None]] = {GROUP_METADATA: self._replay_group}

    def __repr__(self) -> str:
        return f"<ClassicGroups {self._environment.partition}>"

    def committed_by(self, group: ClassicGroup, member_id: str) -> None:
        """A member has committed offsets, so it is alive."""
        member = group.members.get(member_id)
        if member is not None and group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE):
            self.rebalance.reschedule_heartbeat(group, member)

    def describe(self, group_id: str) -> DescribeGroupsResponse.DescribedGroup:
        """Describe a group for DescribeGroups: metadata and assignments of a stable group only.

        Raises: KafkaError GROUP_ID_NOT_FOUND.
        """
        group = self._environment.require(group_id, ClassicGroup)
        stable = group.is_in_state(ClassicGroupState.STABLE)
        protocol = group.protocol_name if stable else None
        return DescribeGroupsResponse.DescribedGroup(
            group_id=group.group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in group.members.values()],
        )

    def _replay_group(self, record: CoordinatorRecord) -> None:
        groups, group_id = self._environment.groups, record.key.group
        previous = self._environment.find(group_id, ClassicGroup)
        if previous is not None:
            self.rebalance.cancel_all(previous)
            del groups[group_id]
        if record.value is not None:
            groups[group_id] = _loaded_group(group_id, record.value)

    def on_loaded(self, group: Group) -> None:
        """Start the timers of the loaded members."""
        assert isinstance(group, ClassicGroup), group
        self.rebalance.note_held(group.group_id, holdings_of(group))
        for member in group.members.values():
            self.rebalance.reschedule_heartbeat(group, member)
        if len(group.members) > self._environment.config.group_max_size:
            self.rebalance.prepare(group, f"{len(group.members)} members are more than group.max.size")
        self.growth.watch(group)

    def on_unloaded(self, group: Group) -> None:
        """Answer every request that waits inside the group with NOT_COORDINATOR."""
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
