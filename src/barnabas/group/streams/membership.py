"""The member that sends a heartbeat of a streams group: a new member, a known one, or a static one that returns.

    joining (epoch 0)     a new member, or a known one that starts again; with an instance id, the successor of the member that had it
    known                 at its epoch, or at the one before if the last response was lost
    leaving (-1, -2)      removed; with -2 a static member keeps its tasks for its successor

Source: KIP-1071; Kafka class `GroupMetadataManager` (`getOrMaybeCreateDynamicStreamsGroupMember` and its static twin,
`throwIfStreamsGroupMemberEpochIsInvalid`, `streamsGroupLeave`).
"""

from __future__ import annotations

import logging
from dataclasses import replace

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import ClassicGroup
from barnabas.group.epoch_group import JOIN_EPOCH, STATIC_LEAVE_EPOCH, joins_again
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams import records
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.member import StreamsGroupMember
from barnabas.group.streams.tasks import EMPTY_TASKS, EMPTY_TASKS_WITH_EPOCHS, Tasks, without_epochs
from barnabas.group.streams.timers import StreamsTimers
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import StreamsGroupHeartbeatRequest

logger = logging.getLogger(__name__)

TaskIds = StreamsGroupHeartbeatRequest.TaskIds


class StreamsMembership:
    """Finds the members of heartbeats, and removes members."""

    def __init__(self, env: GroupEnvironment, timers: StreamsTimers) -> None:
        self._env = env
        self._timers = timers

    def group_of(self, request: StreamsGroupHeartbeatRequest, out: list[CoordinatorRecord]) -> StreamsGroup:
        """The group of a request; one that joins makes it.

        Args:
            out: gets the tombstones of an empty classic group that is replaced.

        Raises: KafkaError GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
        """
        if request.member_epoch != JOIN_EPOCH:
            if request.group_id not in self._env.groups:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {request.group_id} not found.")
            return self._env.require(request.group_id, StreamsGroup)
        group = self._group_to_join(request.group_id, out)
        self._check_size(group, request)
        return group

    def member_of(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, out: list[CoordinatorRecord]
    ) -> tuple[StreamsGroupMember, StreamsGroupMember | None]:
        """The member as it was before the request, and the static member that it replaces.

        Args:
            out: gets the records of the replacement.

        Raises: KafkaError UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID.
        """
        joining = request.member_epoch == JOIN_EPOCH
        if request.instance_id is None:
            default = StreamsGroupMember(request.member_id)
            member = group.members.get(request.member_id, default) if joining else group.member(request.member_id)
            _check_epoch(member, request)
            return member, None
        before = group.static_member(request.instance_id)
        replaced = before if before is not None and before.member_id != request.member_id else None
        return self._static_member(group, before, request, out), replaced

    def _group_to_join(self, group_id: str, out: list[CoordinatorRecord]) -> StreamsGroup:
        """The group of a joining member; a new group replaces an empty classic group of that id."""
        group = self._env.groups.get(group_id)
        if group is None:
            return StreamsGroup(group_id)
        if isinstance(group, ClassicGroup) and group.is_empty:
            out += group.tombstones()
            return StreamsGroup(group_id)
        return self._env.require(group_id, StreamsGroup)

    def _check_size(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
        limit = self._env.config.group_streams_max_size
        known = request.instance_id in group.static_members or group.has_member(request.member_id)
        if not known and group.member_count >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )

    def _static_member(
        self,
        group: StreamsGroup,
        before: StreamsGroupMember | None,
        request: StreamsGroupHeartbeatRequest,
        out: list[CoordinatorRecord],
    ) -> StreamsGroupMember:
        """The member of an instance id; one that returns takes over the tasks it left with."""
        if request.member_epoch != JOIN_EPOCH:
            member = _known_static(before, request)
            _check_epoch(member, request)
            return member
        if before is None:
            return group.members.get(request.member_id, StreamsGroupMember(request.member_id))
        assert request.instance_id is not None, "a member without an instance id is not static"
        if joins_again(before.member_id, before.member_epoch, request.member_id, request.instance_id):
            return before
        member = replace(before, member_id=request.member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
        group_id = group.group_id
        out += records.removed_member_tombstones(group_id, before.member_id)
        out.append(records.member_metadata_record(group_id, member))
        target = group.target_assignment.get(before.member_id, EMPTY_TASKS)
        out.append(records.target_assignment_record(group_id, member.member_id, target))
        out.append(records.current_assignment_record(group_id, member))
        return member

    def leave(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> list[CoordinatorRecord]:
        """The records of a member's leaving.

        Raises: KafkaError UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = _known_static(group.static_member(request.instance_id), request)
            if request.member_epoch == STATIC_LEAVE_EPOCH:
                away = replace(
                    member,
                    member_epoch=STATIC_LEAVE_EPOCH,
                    assigned=member.assigned.with_active_epochs_of(0),
                    pending_revocation=EMPTY_TASKS_WITH_EPOCHS,
                )
                return [records.current_assignment_record(group.group_id, away)]
        logger.info("streams group %s: member %s leaves", group.group_id, member.member_id)
        return self._timers.removal(group, member, "it left")


def _known_static(member: StreamsGroupMember | None, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    if member.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {request.member_id} with instance id {request.instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def concerns_assignment(before: StreamsGroupMember, after: StreamsGroupMember) -> bool:
    """Return whether a static member's change is more than its address."""

    def concern(member: StreamsGroupMember) -> tuple[object, ...]:
        return member.topology_epoch, member.rack_id, member.client_tags, member.process_id

    return concern(before) != concern(after)


def _check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Fence a member with a wrong epoch.

    The previous epoch is accepted if the member has no task that it was not assigned: it has lost the last response.
    """
    received, known = request.member_epoch, member.member_epoch
    if received in (JOIN_EPOCH, known):
        return
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    assigned = (without_epochs(member.assigned.active), member.assigned.standby, member.assigned.warmup)
    if (
        received < known
        and received == member.previous_member_epoch
        and all(_contained(own, given) for own, given in zip(owned, assigned, strict=True))
    ):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {'greater' if received > known else 'smaller'} member epoch ({received}) than "
        f"the one known by the group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _contained(owned: list[TaskIds] | None, assigned: Tasks) -> bool:
    if owned is None:
        return False
    return all(
        entry.subtopology_id in assigned and assigned[entry.subtopology_id].issuperset(entry.partitions)
        for entry in owned
    )
