"""The timers of streams groups.

    session     a member that sends no heartbeat for streams.session.timeout.ms is removed
    rebalance   a member that does not give up what it must within its rebalance timeout is removed
    initial     the first assignment of an empty group waits streams.initial.rebalance.delay.ms for more members

A timer whose records the log refuses is set again; `replay` stops the timers of a removed member.

Source: Kafka class `GroupMetadataManager` (`scheduleStreamsGroup*`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.streams import records
from barnabas.group.streams.group import StreamsGroup
from barnabas.group.streams.member import MemberState, StreamsGroupMember

logger = logging.getLogger(__name__)

"""How long a timer waits after the log has refused its records."""


class StreamsTimers:
    """Watches members of streams groups."""

    def __init__(self, env: GroupEnvironment) -> None:
        self._env = env

    def is_delayed(self, group_id: str) -> bool:
        """Return whether the group waits for more members before its first assignment."""
        return _initial_key(group_id) in self._env.timer

    def begin_initial_delay(self, group_id: str, delay_ms: int, then: Callable[[], CoordinatorResult[None]]) -> None:
        """Wait for more members, unless the group already waits."""
        if not self.is_delayed(group_id):
            self._env.timer.schedule(_initial_key(group_id), delay_ms, then)

    def cancel_initial_delay(self, group_id: str) -> None:
        self._env.timer.cancel(_initial_key(group_id))

    def cancel_member(self, group_id: str, member_id: str) -> None:
        """Stop the timers of a removed member."""
        self._env.timer.cancel(_session_key(group_id, member_id))
        self._env.timer.cancel(_rebalance_key(group_id, member_id))

    def watch_session(self, group_id: str, member_id: str) -> None:
        """Start a member's session again."""
        self._env.timer.schedule_until_written(
            _session_key(group_id, member_id),
            self._env.group_configs.int_value(group_id, "streams.session.timeout.ms"),
            lambda: self._fence(group_id, member_id, "its session expired"),
            f"streams group {group_id}: the removal of {member_id}",
        )

    def watch_revocation(self, group_id: str, member: StreamsGroupMember) -> None:
        """Give a member its rebalance timeout to give up tasks."""
        member_id, epoch = member.member_id, member.member_epoch

        def expire() -> CoordinatorResult[None]:
            group = self._env.find(group_id, StreamsGroup)
            current = None if group is None else group.members.get(member_id)
            if current is None or current.member_epoch != epoch:
                return CoordinatorResult(None)
            return self._fence(group_id, member_id, f"it did not leave epoch {epoch} within its rebalance timeout")

        what = f"streams group {group_id}: the removal of {member_id}"
        key = _rebalance_key(group_id, member_id)
        self._env.timer.schedule_until_written(key, member.rebalance_timeout_ms, expire, what)

    def cancel_revocation(self, group_id: str, member_id: str) -> None:
        """Stop the timer of a member that has given up its tasks."""
        self._env.timer.cancel(_rebalance_key(group_id, member_id))

    def watch_loaded(self, group: StreamsGroup) -> None:
        """Start the timers of a loaded group."""
        for member in group.members.values():
            self.watch_session(group.group_id, member.member_id)
            if member.state is MemberState.UNREVOKED_TASKS:
                self.watch_revocation(group.group_id, member)

    def _fence(self, group_id: str, member_id: str, reason: str) -> CoordinatorResult[None]:
        group = self._env.find(group_id, StreamsGroup)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return CoordinatorResult(None)
        logger.info("streams group %s: member %s is removed because %s", group_id, member_id, reason)
        return CoordinatorResult(None, self.removal(group, member, reason))

    def removal(self, group: StreamsGroup, member: StreamsGroupMember, reason: str) -> list[CoordinatorRecord]:
        """The records that remove a member; the next heartbeat of another gets the new assignment."""
        group_id, epoch = group.group_id, group.group_epoch + 1
        self._env.history.because(
            group_id, epoch, f"member {member.member_id} was removed: {reason}", member.member_id, member.client_id
        )
        removal = records.removed_member_tombstones(group_id, member.member_id)
        removal.append(
            records.group_metadata_record(
                group_id,
                epoch,
                metadata_hash=group.metadata_hash,
                validated_topology_epoch=group.validated_topology_epoch,
                assignment_configs=group.assignment_configs,
            )
        )
        if group.member_count == 1:
            # An empty group is assigned: the next member to join does not wait for the assignment interval.
            removal.append(records.target_assignment_metadata_record(group_id, epoch, 0))
        return removal


def _session_key(group_id: str, member_id: str) -> str:
    return f"streams-session-{group_id}-{member_id}"


def _rebalance_key(group_id: str, member_id: str) -> str:
    return f"streams-rebalance-{group_id}-{member_id}"


def _initial_key(group_id: str) -> str:
    return f"streams-initial-rebalance-{group_id}"
