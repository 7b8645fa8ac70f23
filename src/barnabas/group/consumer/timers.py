"""The timers of consumer group members, and what happens when one fires: the member is fenced.

    session-timeout-G-M     no heartbeat for a session timeout
    rebalance-timeout-G-M   partitions not revoked within the member's rebalance timeout
    consumer-join-G-M, consumer-sync-G-M
                            a classic member that must rejoin, or has joined and sends no SyncGroup

A fenced member is removed as if it had left. If the log refuses that, the timer tries again.

Source: Kafka class `GroupMetadataManager` (`scheduleConsumerGroupSessionTimeout` and its kin); KIP-848.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.coordinator.result import CoordinatorResult
from barnabas.group.consumer.group import ConsumerGroup
from barnabas.group.consumer.member import ConsumerGroupMember
from barnabas.group.group_environment import GroupEnvironment

logger = logging.getLogger(__name__)

SESSION_TIMEOUT = "consumer.session.timeout.ms"


Fence = Callable[[ConsumerGroup, Sequence[ConsumerGroupMember], None, str], CoordinatorResult[None]]
"""Removes members of a group; gets the response and the cause."""


class ConsumerGroupTimers:
    """The timers of the consumer groups of one shard.

    Attributes:
        fence: removes members; set by `ConsumerGroups`.
    """

    def __init__(self, environment: GroupEnvironment) -> None:
        self._environment = environment
        self.fence: Fence

    def schedule_session(self, group_id: str, member: ConsumerGroupMember) -> None:
        """Start a member's session again, with the group's timeout or a classic member's own."""
        timeout_ms = (
            self._environment.group_configs.int_value(group_id, SESSION_TIMEOUT)
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        self._fence_later(_session_key(group_id, member.member_id), timeout_ms, group_id, member, "session timed out")

    def schedule_rebalance(self, group_id: str, member: ConsumerGroupMember) -> None:
        """Give a member its rebalance timeout to revoke partitions at this epoch."""
        epoch, timeout_ms = member.member_epoch, member.rebalance_timeout_ms

        def still_there(current: ConsumerGroupMember) -> bool:
            return current.member_epoch == epoch

        self._fence_later(
            _rebalance_key(group_id, member.member_id),
            timeout_ms,
            group_id,
            member,
            f"did not give its partitions back at epoch {epoch} within {timeout_ms} ms",
            still_there,
        )

    def cancel_rebalance(self, group_id: str, member_id: str) -> None:
        """Stop the timer of a member that has revoked its partitions."""
        self._environment.timer.cancel(_rebalance_key(group_id, member_id))

    def schedule_join_if_absent(self, group_id: str, member: ConsumerGroupMember) -> None:
        """Give a member that must rejoin its rebalance timeout, unless it is running."""
        key = _join_key(group_id, member.member_id)
        if key not in self._environment.timer:
            self._fence_later(key, member.rebalance_timeout_ms, group_id, member, "did not rejoin in time")

    def cancel_join(self, group_id: str, member_id: str) -> None:
        """Stop the timer of a member that has rejoined."""
        self._environment.timer.cancel(_join_key(group_id, member_id))

    def schedule_sync(self, group_id: str, member: ConsumerGroupMember, timeout_ms: int) -> None:
        """Give a member that has joined a timeout for its SyncGroup."""
        self._fence_later(
            _sync_key(group_id, member.member_id), timeout_ms, group_id, member, "sent no SyncGroup in time"
        )

    def cancel_sync(self, group_id: str, member_id: str) -> None:
        """Stop the timer of a member that has sent SyncGroup."""
        self._environment.timer.cancel(_sync_key(group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        """Stop all timers of a removed member."""
        for key in (_session_key, _rebalance_key, _join_key, _sync_key):
            self._environment.timer.cancel(key(group_id, member_id))

    def _fence_later(
        self,
        key: str,
        delay_ms: int,
        group_id: str,
        member: ConsumerGroupMember,
        why: str,
        still: Callable[[ConsumerGroupMember], bool] | None = None,
    ) -> None:
        member_id = member.member_id

        def fire() -> CoordinatorResult[Any]:
            group = self._environment.find(group_id, ConsumerGroup)
            current = None if group is None else group.members.get(member_id)
            if group is None or current is None or (still is not None and not still(current)):
                return CoordinatorResult(None)
            logger.info("group %s: member %s is fenced: %s", group_id, member_id, why)
            return self.fence(group, [current], None, f"member {member_id}: {why}")

        what = f"group {group_id}: fencing {member_id}"
        self._environment.timer.schedule_until_written(key, delay_ms, fire, what)


def _session_key(group_id: str, member_id: str) -> str:
    return f"session-timeout-{group_id}-{member_id}"


def _rebalance_key(group_id: str, member_id: str) -> str:
    return f"rebalance-timeout-{group_id}-{member_id}"


def _join_key(group_id: str, member_id: str) -> str:
    return f"consumer-join-{group_id}-{member_id}"


def _sync_key(group_id: str, member_id: str) -> str:
    return f"consumer-sync-{group_id}-{member_id}"
