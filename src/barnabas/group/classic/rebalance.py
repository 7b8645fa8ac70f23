"""The phases of a classic rebalance: prepare, complete the join, wait for the syncs.

    prepare ──> all members have joined, or the rebalance timeout fires ──> next generation: answer every JoinGroup
                                                              │
          (first join of an empty group: an initial delay)    └──> wait for every SyncGroup, at most a rebalance timeout

Timers of a group, by key: `join-G` ends the join phase, `sync-G` the sync phase, `heartbeat-G-M` a member's session.
Each returns a `CoordinatorResult`; only the end of a group's last member writes a record here (the empty generation).

Invariants:
- members that did not rejoin in time are removed, except static ones, which keep their place until their session ends;
- no JoinGroup is answered with a generation before the join phase is complete;
- a removed member that waits gets UNKNOWN_MEMBER_ID.

Source: Kafka class `GroupMetadataManager` (its classic part); KIP-62, KIP-134 (initial delay), KIP-345, KIP-394.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.classic.consumer_protocol import read_assignment
from barnabas.group.classic.group import UNKNOWN_MEMBER_ID, ClassicGroup, ClassicGroupState
from barnabas.group.classic.member import ClassicGroupMember
from barnabas.group.classic.records import group_metadata_record
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.rebalance_history import Holdings
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import JoinGroupResponse, SyncGroupResponse

logger = logging.getLogger(__name__)

NOTHING: CoordinatorResult[None] = CoordinatorResult(None)


class Rebalance:
    """Rebalances of the groups of one shard."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self._config = environment.config
        self._timer = environment.timer
        self._now_ms = environment.now_ms
        # The last assignment of each member: for the history alone.
        self._held: dict[str, Holdings] = {}

    def _find(self, group_id: str) -> ClassicGroup | None:
        """Return the group, if it still exists and is a classic group; for timers."""
        return self._environment.find(group_id, ClassicGroup)

    # Starting

    def prepare_or_complete_join(
        self, group: ClassicGroup, reason: str, member: ClassicGroupMember | None = None
    ) -> CoordinatorResult[None]:
        """Start a rebalance, or, if one is being prepared, see whether all have joined."""
        if group.can_rebalance:
            return self.prepare(group, reason, member)
        return self.maybe_complete_join(group)

    def prepare(
        self, group: ClassicGroup, reason: str, member: ClassicGroupMember | None = None
    ) -> CoordinatorResult[None]:
        """Start a rebalance; an empty group waits a while for further members (KIP-134).

        Args:
            member: the member that causes it, if one does.
        """
        if group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE):
            self.propagate_error(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync_members.clear()
        self._timer.cancel(_sync_key(group.group_id))
        initial = group.is_empty
        if initial:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            self._schedule_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        logger.info("group %s: rebalance after generation %d: %s", group.group_id, group.generation_id, reason)
        self._note_cause(group, reason, member)
        group.transition_to(ClassicGroupState.PREPARING_REBALANCE, self._now_ms())
        if initial:
            return NOTHING
        if group.has_all_members_joined:
            return self.complete_join(group)
        self._schedule_join(group)
        return NOTHING

    def _schedule_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self._timer.schedule(
            _join_key(group.group_id),
            delay_ms,
            lambda: self._end_initial_delay(group.group_id, delay_ms, remaining_ms),
        )

    def _end_initial_delay(self, group_id: str, delay_ms: int, remaining_ms: int) -> CoordinatorResult[None]:
        group = self._find(group_id)
        if group is None:
            return NOTHING
        if group.new_member_added and remaining_ms != 0:
            group.new_member_added = False
            next_delay_ms = min(self._config.group_initial_rebalance_delay_ms, remaining_ms)
            self._schedule_initial(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return NOTHING
        return self.complete_join(group)

    def _schedule_join(self, group: ClassicGroup) -> None:
        def expire() -> CoordinatorResult[None]:
            current = self._find(group.group_id)
            return NOTHING if current is None else self.complete_join(current)

        self._timer.schedule(_join_key(group.group_id), group.rebalance_timeout_ms, expire)

    # The end of the join phase

    def maybe_complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        """Complete the join phase if all have joined; the initial delay is always waited out."""
        if (
            not group.is_in_state(ClassicGroupState.PREPARING_REBALANCE)
            or group.previous_state is ClassicGroupState.EMPTY
            or not group.has_all_members_joined
        ):
            return NOTHING
        return self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> CoordinatorResult[None]:
        """Start the next generation with the members that have joined."""
        self._timer.cancel(_join_key(group.group_id))
        self._remove_dynamic_members_not_rejoined(group)
        if group.is_in_state(ClassicGroupState.DEAD):
            return NOTHING
        if not group.maybe_elect_new_joined_leader() and group.members:
            # Only static members are left and none has returned: wait for one, or for their sessions to end.
            self._schedule_join(group)
            return NOTHING
        group.init_next_generation(self._now_ms())
        if group.is_empty:
            logger.info("group %s: generation %d is empty", group.group_id, group.generation_id)
            self._note_assignment(group)
            return CoordinatorResult(
                None, [group_metadata_record(group, {})], replay=False, on_append=_warn_not_written(group.group_id)
            )
        self._answer_joins(group)
        return NOTHING

    def _remove_dynamic_members_not_rejoined(self, group: ClassicGroup) -> None:
        gone = [m.member_id for m in group.members.values() if m.awaiting_join is None and not m.is_static]
        for member_id in gone:
            group.remove(member_id)
            self.cancel_heartbeat(group, member_id)
        if gone:
            logger.info("group %s: removed members that did not rejoin: %s", group.group_id, gone)

    def _answer_joins(self, group: ClassicGroup) -> None:
        count = len(group.members)
        plural = "" if count == 1 else "s"
        logger.info("group %s: generation %d with %d member%s", group.group_id, group.generation_id, count, plural)
        for member in group.members.values():
            leads = group.is_leader(member.member_id)
            group.complete_join(member, group.join_response(member.member_id, with_members=leads))
            self.reschedule_heartbeat(group, member)
            member.is_new = False
            group.pending_sync_members[member.member_id] = None
        generation_id = group.generation_id
        self._timer.schedule(
            _sync_key(group.group_id),
            group.rebalance_timeout_ms,
            lambda: self._expire_pending_sync(group.group_id, generation_id),
        )

    # The sync phase

    def sync_received(self, group: ClassicGroup, member_id: str) -> None:
        """Note a member's SyncGroup; when it was the last, the sync phase needs no timer any more."""
        group.pending_sync_members.pop(member_id, None)
        if not group.pending_sync_members:
            self._timer.cancel(_sync_key(group.group_id))

    def _expire_pending_sync(self, group_id: str, generation_id: int) -> CoordinatorResult[None]:
        group = self._find(group_id)
        if group is None or group.generation_id != generation_id or not group.pending_sync_members:
            return NOTHING
        if not group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
            return NOTHING
        gone = list(group.pending_sync_members)
        for member_id in gone:
            group.remove(member_id)
            self.cancel_heartbeat(group, member_id)
        return self.prepare(group, f"members {gone} sent no SyncGroup in time")

    def propagate_assignment(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Store each member's part of the leader's assignment, and answer the members that wait for it."""
        assert group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE), group
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        self._note_assignment(group)
        self._answer_syncs(group, ErrorCode.NONE)

    def propagate_error(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Clear all assignments, and answer the members that wait for one with an error."""
        assert group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE), group
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, error)

    def _answer_syncs(self, group: ClassicGroup, error: ErrorCode) -> None:
        given = error is ErrorCode.NONE
        for member in group.members.values():
            response = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if given else None,
                protocol_name=group.protocol_name if given else None,
                assignment=member.assignment,
            )
            if group.complete_sync(member, response):
                # A session that ended while the member waited here was ignored: watch it again from now.
                self.reschedule_heartbeat(group, member)

    # The history

    def _note_cause(self, group: ClassicGroup, reason: str, member: ClassicGroupMember | None) -> None:
        history, generation_id = self._environment.history, group.generation_id + 1
        member_id, client_id = ("", "") if member is None else (member.member_id, member.client_id)
        history.because(group.group_id, generation_id, reason, member_id, client_id)
        history.begun(group.group_id, generation_id)

    def _note_assignment(self, group: ClassicGroup) -> None:
        """Note the assignment of the generation; it is empty if no member is left."""
        after = holdings_of(group)
        self._environment.history.moved(group.group_id, self._held.get(group.group_id, {}), after)
        self._environment.history.ended(group.group_id, len(group.members))
        self._held[group.group_id] = after

    def note_held(self, group_id: str, held: Holdings) -> None:
        """Note the partitions of the members of a group that was loaded or converted."""
        self._held[group_id] = held

    # Sessions

    def reschedule_heartbeat(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """The member is alive: its session timeout starts again."""
        self.schedule_heartbeat(group, member.member_id, member.session_timeout_ms)

    def schedule_heartbeat(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Watch a member, or a pending one, for a time."""
        self._timer.schedule(
            _heartbeat_key(group.group_id, member_id),
            timeout_ms,
            lambda: self._expire_heartbeat(group.group_id, member_id),
        )

    def cancel_heartbeat(self, group: ClassicGroup, member_id: str) -> None:
        """Stop watching a member."""
        self._timer.cancel(_heartbeat_key(group.group_id, member_id))

    def cancel_all(self, group: ClassicGroup) -> None:
        """The group is deleted, or of another type now: none of its timers may fire."""
        self._held.pop(group.group_id, None)
        self._timer.cancel(_join_key(group.group_id))
        self._timer.cancel(_sync_key(group.group_id))
        for member_id in (*group.members, *group.pending_join_members):
            self.cancel_heartbeat(group, member_id)

    def _expire_heartbeat(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        group = self._find(group_id)
        if group is None or group.is_in_state(ClassicGroupState.DEAD):
            return NOTHING
        if group.is_pending_member(member_id):
            logger.info("group %s: pending member %s did not join in time", group_id, member_id)
            group.remove(member_id)
            if group.is_in_state(ClassicGroupState.PREPARING_REBALANCE) and group.has_all_members_joined:
                return self.complete_join(group)
            return NOTHING
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return NOTHING
        logger.info("group %s: session of member %s ended", group_id, member_id)
        self.drop_member(group, member_id)
        if group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            return self.prepare_or_complete_join(group, f"session of member {member_id} ended", member)
        if group.is_in_state(ClassicGroupState.PREPARING_REBALANCE) and group.has_all_members_joined:
            return self.complete_join(group)
        return NOTHING

    def drop_member(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member; if it waits, it gets UNKNOWN_MEMBER_ID and joins again."""
        gone, member = ErrorCode.UNKNOWN_MEMBER_ID, group.members[member_id]
        self.cancel_heartbeat(group, member_id)
        group.complete_join(member, JoinGroupResponse(member_id=UNKNOWN_MEMBER_ID, error_code=gone))
        group.complete_sync(member, SyncGroupResponse(error_code=gone))
        group.remove(member_id)


def holdings_of(group: ClassicGroup) -> Holdings:
    """Return the partitions of each member; nothing unless these are consumers with readable assignments."""
    held = {}
    for member in group.members.values() if group.uses_consumer_group_protocol else ():
        try:
            assigned = read_assignment(member.assignment).assigned_partitions if member.assignment else []
        except MalformedMessage:
            return {}
        held[member.member_id] = frozenset((topic.topic, index) for topic in assigned for index in topic.partitions)
    return held


def _warn_not_written(group_id: str) -> Callable[[KafkaError | None], None]:
    def warn(error: KafkaError | None) -> None:
        if error is not None:
            # After a failover the last written generation would be loaded, and time out: harmless.
            logger.warning("group %s: the empty generation is not written: %s", group_id, error)

    return warn


def _join_key(group_id: str) -> str:
    return f"join-{group_id}"


def _sync_key(group_id: str) -> str:
    return f"sync-{group_id}"


def _heartbeat_key(group_id: str, member_id: str) -> str:
    return f"heartbeat-{group_id}-{member_id}"
