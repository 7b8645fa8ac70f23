"""The sessions of share group members: a member that sends no heartbeat for share.session.timeout.ms is removed.

Source: Kafka class `GroupMetadataManager` (`scheduleShareGroupSessionTimeout`, `shareGroupFenceMember`).
"""

from __future__ import annotations

import logging

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group_environment import GroupEnvironment
from barnabas.group.share import records
from barnabas.group.share.group import ShareGroup
from barnabas.group.share.member import ShareGroupMember

logger = logging.getLogger(__name__)

"""How long a timer waits after the log has refused its records."""


class ShareGroupTimers:
    """Watches the members of the share groups of one shard."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self._env = environment

    def watch_session(self, group_id: str, member_id: str) -> None:
        """Start a member's session again."""
        self._env.timer.schedule_until_written(
            _session_key(group_id, member_id),
            self._env.group_configs.int_value(group_id, "share.session.timeout.ms"),
            lambda: self._expire(group_id, member_id),
            f"share group {group_id}: the removal of {member_id}",
        )

    def _expire(self, group_id: str, member_id: str) -> CoordinatorResult[None]:
        group = self._env.find(group_id, ShareGroup)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return CoordinatorResult(None)
        logger.info("share group %s: member %s is removed because its session expired", group_id, member_id)
        return CoordinatorResult(None, self.removal(group, member, "its session expired"))

    def cancel_session(self, group_id: str, member_id: str) -> None:
        """Stop watching a member that has been removed."""
        self._env.timer.cancel(_session_key(group_id, member_id))

    def removal(self, group: ShareGroup, member: ShareGroupMember, reason: str) -> list[CoordinatorRecord]:
        """Return the records that remove a member."""
        env, group_id = self._env, group.group_id
        metadata_hash = group.compute_metadata_hash(group.counts_with(member, None), env.topic_hashes, env.image())
        epoch = group.group_epoch + 1
        env.history.because(
            group_id, epoch, f"member {member.member_id} was removed: {reason}", member.member_id, member.client_id
        )
        removal = [
            *records.removal_of_member(group_id, member.member_id),
            records.epoch_record(group_id, epoch, metadata_hash),
        ]
        if group.member_count == 1:
            # An empty group is assigned: the next member to join does not wait for the assignment interval.
            removal.append(records.target_epoch_record(group_id, epoch, 0))
        return removal


def _session_key(group_id: str, member_id: str) -> str:
    return f"share-session-{group_id}-{member_id}"
