"""Reconciliation: how a member gets from its assignment to its target.

    has ∩ target      stays
    has − target      must be revoked; until the member's heartbeat reports that, the member stays at its epoch
    target − has      is assigned as soon as no other member has it

                 revoke first
      STABLE ───────────────────> UNREVOKED_PARTITIONS ──┐ the member has revoked them
        │  ^                                             │
        │  └──────── nothing left to wait for ───────────┤
        v                                                v
      (next epoch)  <─────────────────────────  UNRELEASED_PARTITIONS: others have yet to give back

A member that changes its subscription between two epochs immediately revokes the partitions that it stops consuming.

Invariants: a partition has one owner at a time (see `partition_epoch`); a member moves to the target's epoch
only when it has given everything back.

Source: Kafka class `CurrentAssignmentBuilder`; KIP-848, "Member reconciliation".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from barnabas.group.consumer.member import (
    NO_PARTITIONS,
    AssignmentWithEpochs,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.group.modern_group import Assignment
from barnabas.protocol.errors import ErrorCode, KafkaError

Owned = Mapping[bytes, Sequence[int]]
"""The partitions that a member reports: topic id to partition indexes."""

FREE = -1
"""The epoch of a partition without an owner."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The input of a member's next step.

    Args:
        member: as it is.
        target_epoch: the epoch of the target assignment.
        target: what the member should have at that epoch.
        subscribed_topic_ids: the topics it consumes, by name or expression, that exist.
        subscription_changed: since the last step.
        partition_epoch: the epoch of a partition's present owner, `FREE` without one.
        owned: the partitions that the member reports; None if it reports none.
    """

    member: ConsumerGroupMember
    target_epoch: int
    target: Assignment
    subscribed_topic_ids: Collection[bytes]
    subscription_changed: bool
    partition_epoch: Callable[[bytes, int], int]
    owned: Owned | None

    def next_member(self) -> ConsumerGroupMember:
        """Return the member after its next step; the same object if nothing changes.

        Raises: KafkaError FENCED_MEMBER_EPOCH for a member in an unknown state.
        """
        member = self.member
        if member.state is MemberState.STABLE:
            if member.member_epoch != self.target_epoch:
                return self._compute(member.member_epoch)
            return self._drop_unsubscribed() if self.subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self._still_owns(member.pending_revocation):
                return self._drop_unsubscribed() if self.subscription_changed else member
            return self._compute(member.member_epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self._compute(member.member_epoch)
        if self.owned is None or self.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin.",
            )
        return self._compute(self.target_epoch)

    def _still_owns(self, assignment: AssignmentWithEpochs) -> bool:
        """Return whether the member reports any of these, or reports nothing."""
        if self.owned is None:
            return True
        return any(
            partition in assignment.get(topic_id, {})
            for topic_id, partitions in self.owned.items()
            for partition in partitions
        )

    def _drop_unsubscribed(self) -> ConsumerGroupMember:
        """Revoke what the member stops consuming; its epoch stays."""
        member = self.member
        dropped = {
            topic_id: partitions
            for topic_id, partitions in member.assigned.items()
            if topic_id not in self.subscribed_topic_ids
        }
        if not dropped:
            return member
        kept = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in dropped}
        pending = dict(member.pending_revocation)
        for topic_id, partitions in dropped.items():
            pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
        if self._still_owns(pending):
            return _at(member, member.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
        return _at(member, member.member_epoch, member.state, kept, member.pending_revocation)

    def _compute(self, member_epoch: int) -> ConsumerGroupMember:
        member = self.member
        kept: dict[bytes, dict[int, int]] = {}
        to_revoke: dict[bytes, dict[int, int]] = {}
        to_assign: dict[bytes, list[int]] = {}
        waits = False
        for topic_id in {**self.target, **member.assigned}:
            target = self.target.get(topic_id, frozenset()) if topic_id in self.subscribed_topic_ids else frozenset()
            has = member.assigned.get(topic_id, {})
            stays = {partition: epoch for partition, epoch in has.items() if partition in target}
            goes = {partition: epoch for partition, epoch in has.items() if partition not in target}
            free = []
            for partition in sorted(target - has.keys()):
                if self._is_free(topic_id, partition):
                    free.append(partition)
                else:
                    waits = True
            for collected, found in ((kept, stays), (to_revoke, goes)):
                if found:
                    collected[topic_id] = found
            if free:
                to_assign[topic_id] = free
        if to_revoke and self._still_owns(to_revoke):
            return _at(member, member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
        for topic_id, partitions in to_assign.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, self.target_epoch))
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return _at(member, self.target_epoch, state, kept, NO_PARTITIONS)

    def _is_free(self, topic_id: bytes, partition: int) -> bool:
        """Return whether no member has the partition, or only this member, which has just revoked it."""
        if self.partition_epoch(topic_id, partition) == FREE:
            return True
        return partition in self.member.pending_revocation.get(topic_id, {})


def _at(
    member: ConsumerGroupMember,
    member_epoch: int,
    state: MemberState,
    assigned: AssignmentWithEpochs,
    pending_revocation: AssignmentWithEpochs,
) -> ConsumerGroupMember:
    return replace(
        member,
        member_epoch=member_epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
