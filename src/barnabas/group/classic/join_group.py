"""JoinGroup: whether a client may join a classic group, and what that changes.

    no member id, dynamic, v4+   MEMBER_ID_REQUIRED with an id; the id is pending for a session timeout (KIP-394)
    no member id, dynamic        a new member
    no member id, static, known  takes the place of the member with that instance id (KIP-345)
    no member id, static, new    a new member
    member id, pending           a new member under that id
    member id, member            rejoins; only a change, the leader, or a rebalance in progress makes it wait

The order of the checks is Kafka's: group size, then state, protocols, identity.

A static member that returns to a stable group, with a change that does not affect the chosen protocol, gets its
old assignment without a rebalance: the new member id is written, and a leader is answered with `skip_assignment` (v9, KIP-814).

Source: Kafka class `GroupMetadataManager.classicGroupJoin`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from barnabas.coordinator.append_error import append_error
from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.group import UNKNOWN_MEMBER_ID, ClassicGroup, ClassicGroupState
from barnabas.group.classic.member import ClassicGroupMember, JoinReply, Protocols
from barnabas.group.classic.rebalance import NOTHING, Rebalance
from barnabas.group.classic.records import empty_group_metadata_record, group_metadata_record
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import JoinGroupRequest, JoinGroupResponse

logger = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup request, its sender, and the reply to it."""

    request: JoinGroupRequest
    sender: Sender
    reply: JoinReply

    @property
    def protocols(self) -> Protocols:
        return {protocol.name: protocol.metadata for protocol in self.request.protocols}

    @property
    def rebalance_timeout_ms(self) -> int:
        """Version 0 has only the session timeout, which then stands for both."""
        return self.request.session_timeout_ms if self.sender.version == 0 else self.request.rebalance_timeout_ms

    @property
    def stated_reason(self) -> str:
        """The client's reason, to follow a sentence; empty if it gave none."""
        return f" (client reason: {self.request.reason})" if self.request.reason else ""

    def refuse(self, error: ErrorCode, member_id: str | None = None) -> CoordinatorResult[None]:
        """Answer with an error, under the request's member id or another."""
        member_id = self.request.member_id if member_id is None else member_id
        self.reply(JoinGroupResponse(member_id=member_id, error_code=error))
        return NOTHING


@dataclass(frozen=True, slots=True)
class _StaticReplacement:
    """A static member that has returned under a new id, and what restores the old id if the log refuses the new one."""

    joining: Joining
    group: ClassicGroup
    member: ClassicGroupMember
    old_id: str
    leader_before: str | None
    before: tuple[Protocols, int, int]
    """Its protocols, rebalance timeout and session timeout in milliseconds."""


class JoinGroup:
    """Handles JoinGroup for the groups of one shard."""

    def __init__(self, environment: GroupEnvironment, rebalance: Rebalance) -> None:
        self._environment = environment
        self._config = environment.config
        self._rebalance = rebalance
        self._now_ms = environment.now_ms
        self._random = environment.rng

    def handle(self, joining: Joining) -> CoordinatorResult[None]:
        """Handle a request; its `reply` is called now or when the rebalance is complete."""
        group_id, member_id = joining.request.group_id, joining.request.member_id
        group = self._environment.find(group_id, ClassicGroup)
        if group is None:
            if member_id != UNKNOWN_MEMBER_ID:
                return joining.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            return self._join_new_group(joining)
        return self._join(joining, group)

    def _join_new_group(self, joining: Joining) -> CoordinatorResult[None]:
        """Create the group, and write that it exists unless the join itself writes it."""
        group = ClassicGroup(joining.request.group_id, now_ms=self._now_ms())
        self._environment.groups[group.group_id] = group
        record = empty_group_metadata_record(group.group_id, group.current_state_timestamp_ms)
        result = self._join(joining, group)
        assert not result.records, "the first join of a group writes nothing"

        def on_append(error: KafkaError | None) -> None:
            if error is None:
                return
            logger.warning("group %s: its first record is not written: %s", group.group_id, error)
            if self._environment.groups.get(group.group_id) is group:
                self._rebalance.cancel_all(group)
                code = append_error(error)
                for member in group.members.values():
                    group.complete_join(member, JoinGroupResponse(error_code=code))
                del self._environment.groups[group.group_id]

        return CoordinatorResult(None, [record], replay=False, on_append=on_append)

    def _join(self, joining: Joining, group: ClassicGroup) -> CoordinatorResult[None]:
        member_id = joining.request.member_id
        if not self._accepts(group, member_id):
            group.remove(member_id)
            self._rebalance.cancel_heartbeat(group, member_id)
            return joining.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID)
        if group.is_in_state(ClassicGroupState.DEAD):
            return joining.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not group.supports_protocols(joining.request.protocol_type, joining.protocols):
            return joining.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_new_member(joining, group)
        return self._join_existing_member(joining, group)

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the group has room: while preparing, the waiting members count, else all members."""
        if group.is_in_state(ClassicGroupState.EMPTY, ClassicGroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.is_in_state(ClassicGroupState.PREPARING_REBALANCE):
            waits = member is not None and member.awaiting_join is not None
            return waits or group.awaiting_join_count < self._config.group_max_size
        return member is not None or len(group.members) < self._config.group_max_size

    def _join_new_member(self, joining: Joining, group: ClassicGroup) -> CoordinatorResult[None]:
        instance_id = joining.request.group_instance_id
        new_id = group.new_member_id(joining.sender.client_id, instance_id, self._random)
        if instance_id is not None:
            existing_id = group.static_members.get(instance_id)
            if existing_id is None:
                return self._add(joining, group, new_id)
            return self._replace_static(joining, group, existing_id, new_id)
        if joining.sender.version >= MEMBER_ID_REQUIRED_SINCE:
            group.pending_join_members[new_id] = None
            self._rebalance.schedule_heartbeat(group, new_id, joining.request.session_timeout_ms)
            return joining.refuse(ErrorCode.MEMBER_ID_REQUIRED, new_id)
        return self._add(joining, group, new_id)

    def _add(self, joining: Joining, group: ClassicGroup, member_id: str) -> CoordinatorResult[None]:
        request = joining.request
        member = ClassicGroupMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=joining.sender.client_id,
            client_host=joining.sender.client_host,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=joining.protocols,
        )
        member.is_new = True
        preparing = group.is_in_state(ClassicGroupState.PREPARING_REBALANCE)
        if preparing and group.previous_state is ClassicGroupState.EMPTY:
            group.new_member_added = True  # The initial delay may be prolonged.
        group.add(member, joining.reply)
        # A new member cannot send heartbeats before its first answer; a client that has left must not stay for ever.
        self._rebalance.schedule_heartbeat(group, member_id, self._config.new_member_join_timeout_ms)
        instance = "" if request.group_instance_id is None else f" as instance {request.group_instance_id}"
        cause = f"member {member_id} joined{instance}{joining.stated_reason}"
        return self._rebalance.prepare_or_complete_join(group, cause, member)

    def _join_existing_member(self, joining: Joining, group: ClassicGroup) -> CoordinatorResult[None]:
        member_id = joining.request.member_id
        if group.is_pending_member(member_id):
            if joining.request.group_instance_id is not None:
                return joining.refuse(ErrorCode.UNKNOWN_MEMBER_ID)  # Pending members are dynamic; Kafka fails here.
            return self._add(joining, group, member_id)
        try:
            group.validate_member(member_id, joining.request.group_instance_id)
        except KafkaError as error:
            return joining.refuse(error.code)
        member = group.members[member_id]
        unchanged = member.matches(joining.protocols)
        if group.is_in_state(ClassicGroupState.PREPARING_REBALANCE):
            return self._rejoin(joining, group, member, "rejoins")
        if group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE):
            if not unchanged:
                return self._rejoin(joining, group, member, "changed its metadata")
            # It may not have received the answer: give it again.
            joining.reply(group.join_response(member_id, with_members=group.is_leader(member_id)))
            return NOTHING
        if group.is_in_state(ClassicGroupState.STABLE):
            if group.is_leader(member_id):
                # The leader may see what the members' metadata does not show, such as new partitions.
                return self._rejoin(joining, group, member, "leads and rejoins")
            if not unchanged:
                return self._rejoin(joining, group, member, "changed its metadata")
            joining.reply(group.join_response(member_id, with_members=False))
            return NOTHING
        return joining.refuse(ErrorCode.UNKNOWN_MEMBER_ID)

    def _rejoin(
        self, joining: Joining, group: ClassicGroup, member: ClassicGroupMember, what: str
    ) -> CoordinatorResult[None]:
        self._update(joining, group, member)
        return self._rebalance.prepare_or_complete_join(
            group, f"member {member.member_id} {what} in {group.state.value}{joining.stated_reason}", member
        )

    def _update(self, joining: Joining, group: ClassicGroup, member: ClassicGroupMember) -> None:
        group.update_member(
            member,
            joining.protocols,
            joining.rebalance_timeout_ms,
            joining.request.session_timeout_ms,
            joining.reply,
        )

    def _replace_static(
        self, joining: Joining, group: ClassicGroup, old_id: str, new_id: str
    ) -> CoordinatorResult[None]:
        instance_id = joining.request.group_instance_id
        assert instance_id is not None
        logger.info("group %s: static member %s is now %s, was %s", group.group_id, instance_id, new_id, old_id)
        leader_before = group.leader_id
        member = group.replace_static_member(instance_id, old_id, new_id)
        self._rebalance.cancel_heartbeat(group, old_id)
        self._rebalance.reschedule_heartbeat(group, member)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(joining, group, member)
        reason = f"static member {instance_id} came back as {new_id}{joining.stated_reason}"
        if group.is_in_state(ClassicGroupState.STABLE):
            if group.select_protocol() != group.protocol_name:
                return self._rebalance.prepare_or_complete_join(group, f"{reason} with another protocol", member)
            return self._keep_assignment(_StaticReplacement(joining, group, member, old_id, leader_before, before))
        if group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE):
            # The leader may have been given the old member id: its assignment would miss this member.
            return self._rebalance.prepare(group, reason, member)
        assert group.is_in_state(ClassicGroupState.PREPARING_REBALANCE), group
        return self._rebalance.maybe_complete_join(group)

    def _keep_assignment(self, replacement: _StaticReplacement) -> CoordinatorResult[None]:
        """Write the new member id, and answer with the present generation."""
        joining, group, member = replacement.joining, replacement.group, replacement.member
        assignments = {m.member_id: m.assignment for m in group.members.values()}

        def on_append(error: KafkaError | None) -> None:
            if error is not None:
                self._revert_static(replacement, error)
                return
            if not group.is_in_state(ClassicGroupState.STABLE):
                return  # A rebalance has started meanwhile, and will answer this join with the others.
            if joining.sender.version >= SKIP_ASSIGNMENT_SINCE:
                leads = group.is_leader(member.member_id)
                response = group.join_response(member.member_id, with_members=leads, skip_assignment=leads)
            else:
                # An older client would assign again if it knew that it leads: name the leader before it.
                response = group.join_response(member.member_id, with_members=False)
                response.leader = replacement.leader_before or ""
            group.complete_join(member, response)

        return CoordinatorResult(None, [group_metadata_record(group, assignments)], replay=False, on_append=on_append)

    def _revert_static(self, replacement: _StaticReplacement, error: KafkaError) -> None:
        """Give the place back to the old member id, and answer with the error."""
        group, member, old_id = replacement.group, replacement.member, replacement.old_id
        logger.warning("group %s: static member %s keeps its id: %s", group.group_id, old_id, error)
        instance_id = member.group_instance_id
        if instance_id is not None and group.static_members.get(instance_id) == member.member_id:
            group.update_member(member, *replacement.before, None)
            old = group.replace_static_member(instance_id, member.member_id, old_id)
            self._rebalance.cancel_heartbeat(group, member.member_id)
            self._rebalance.reschedule_heartbeat(group, old)
        response = group.join_response(UNKNOWN_MEMBER_ID, with_members=False)
        response.leader = replacement.leader_before or ""
        response.error_code = append_error(error)
        replacement.joining.reply(response)
