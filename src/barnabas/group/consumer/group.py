"""ConsumerGroup: a group of KIP-848, all of it from records.

    EMPTY        no members
    ASSIGNING    the target assignment is behind the group epoch
    RECONCILING  some member has not reached its target assignment
    STABLE       every member has

A group that is migrating has members of the classic protocol too (`ConsumerGroupMember.classic`).

Invariants:
- a partition's epoch (`partition_epoch`) is that of the member that has it or is giving it back; there is at most one;
- the counts beside the members (assignors, expressions, classic protocols, instance ids) are those of the members.

Source: Kafka class `ConsumerGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.classic.group import CONSUMER_PROTOCOL_TYPE
from barnabas.group.consumer import records
from barnabas.group.consumer.current_assignment import FREE
from barnabas.group.consumer.member import AssignmentWithEpochs, ConsumerGroupMember, MemberState
from barnabas.group.consumer.records import ResolvedRegularExpression
from barnabas.group.group import GroupType, OffsetCommitter, PartitionCheck
from barnabas.group.group_environment import TopicSubscribers
from barnabas.group.modern_group import ModernGroup, SubscriptionCounts, add_to_counts
from barnabas.protocol.errors import ErrorCode, KafkaError

MEMBER_EPOCH_SINCE = 9
"""The OffsetCommit version from which a commit has a member epoch."""


class ConsumerGroupState(Enum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(ModernGroup[ConsumerGroupMember]):
    """One consumer group.

    Attributes:
        has_partition_metadata_record: a broker before 4.1 has left a record that the next step must delete.
    """

    type = GroupType.CONSUMER
    protocol_type = CONSUMER_PROTOCOL_TYPE

    def __init__(self, group_id: str, subscribers: TopicSubscribers) -> None:
        self.static_members: dict[str, str] = {}
        self.server_assignors: Counter[str] = Counter()
        self.regex_subscribers: Counter[str] = Counter()
        self.resolved_regexes: dict[str, ResolvedRegularExpression] = {}
        self.classic_member_count = 0
        self._classic_protocols: Counter[str] = Counter()
        self._partition_epochs: dict[bytes, dict[int, int]] = {}
        self.has_partition_metadata_record = False
        super().__init__(group_id, subscribers)

    # Questions

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def state_name(self) -> str:
        return self.state.value

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """The member with an instance id, None without one."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that has the partition or is giving it back; `FREE` (-1) if no member has it."""
        return self._partition_epochs.get(topic_id, {}).get(partition, FREE)

    def waits_for_others(self, member: ConsumerGroupMember) -> bool:
        """Return whether a partition that the member should have is still with another member."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {}) and self.partition_epoch(topic_id, partition) != FREE
            for topic_id, partitions in self.target_assignment.get(member.member_id, {}).items()
            for partition in partitions
        )

    def preferred_assignor(
        self, old: ConsumerGroupMember | None = None, new: ConsumerGroupMember | None = None
    ) -> str | None:
        """The assignor that most members ask for, as it would be with a member changed; None when none is asked for."""
        counts = Counter(self.server_assignors)
        if old is not None and old.server_assignor is not None:
            counts[old.server_assignor] -= 1
        if new is not None and new.server_assignor is not None:
            counts[new.server_assignor] += 1
        best = max(counts.values(), default=0)
        return None if best == 0 else next(name for name, count in counts.items() if count == best)

    def supports_classic_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a classic member may join: all classic members must support one of its protocols."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        if self.is_empty:
            return bool(names)
        return any(self._classic_protocols[name] == self.classic_member_count for name in names)

    def all_classic_except(self, members: Collection[ConsumerGroupMember]) -> bool:
        """Return whether every member but these speaks the classic protocol."""
        classic = sum(member.uses_classic_protocol for member in members)
        return self.classic_member_count - classic == len(self.members) - len(members)

    # Subscriptions

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The topics that a member names, and those that its expression matched."""
        resolved = self.resolved_regexes.get(member.regex) if member.regex else None
        return member.subscribed_topic_names if resolved is None else member.subscribed_topic_names | resolved.topics

    def counts_with(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> SubscriptionCounts:
        counts = super().counts_with(old, new)
        regex = "" if old is None else old.regex
        if regex and regex != ("" if new is None else new.regex) and self.regex_subscribers[regex] == 1:
            self._uncount_regex(counts, regex)
        return counts

    def counts_without(
        self, members: Iterable[ConsumerGroupMember], deleted_regexes: Iterable[str]
    ) -> SubscriptionCounts:
        """The counts as they would be without some members, and without the expressions that only they subscribe to."""
        counts = dict(self.subscribed_topic_names)
        for member in members:
            add_to_counts(counts, member.subscribed_topic_names, by_name=-1)
        for regex in deleted_regexes:
            self._uncount_regex(counts, regex)
        return counts

    def _uncount_regex(self, counts: SubscriptionCounts, regex: str) -> None:
        resolved = self.resolved_regexes.get(regex)
        if resolved is not None:
            add_to_counts(counts, resolved.topics, by_regex=-1)

    def regex_subscribers_with(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> Counter[str]:
        """How many members subscribe to each expression, as it would be with a member changed."""
        counts = Counter(self.regex_subscribers)
        counts.subtract([old.regex] if old.regex else [])
        counts.update([new.regex] if new.regex else [])
        return +counts

    def update_regex(self, regex: str, resolved: ResolvedRegularExpression | None) -> None:
        """Store what an expression resolves to; None if its last subscriber has left."""
        old = self.resolved_regexes.pop(regex, None)
        before = frozenset[str]() if old is None else old.topics
        after = frozenset[str]() if resolved is None else resolved.topics
        if resolved is not None:
            self.resolved_regexes[regex] = resolved
        self.change_subscriptions(sorted(after - before), by_regex=1)
        self.change_subscriptions(sorted(before - after), by_regex=-1)

    # Checks

    def validate_offset_commit(self, committer: OffsetCommitter) -> PartitionCheck | None:
        """Accept a commit at the member's epoch; at an older one only for partitions assigned by then (KIP-1251).

        Raises: KafkaError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION (a classic member's), UNSUPPORTED_VERSION.
        """
        if committer.epoch < 0 and self.is_empty:
            return None
        if committer.is_transactional and committer.names_no_member:
            return None
        member = self.member(committer.member_id)
        if (
            not committer.is_transactional
            and not member.uses_classic_protocol
            and committer.version < MEMBER_EPOCH_SINCE
        ):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if committer.epoch == member.member_epoch:
            return None
        stale = _stale_error(member)
        if committer.epoch > member.member_epoch:
            raise KafkaError(stale, f"Epoch {committer.epoch} is newer than the member's {member.member_epoch}.")

        def check(topic: str, topic_id: bytes, partition: int) -> ErrorCode:
            assigned_at = member.assignment_epoch(topic_id, partition)
            return stale if assigned_at is None or committer.epoch < assigned_at else ErrorCode.NONE

        return check

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise KafkaError(
                _stale_error(member),
                f"The received epoch {member_epoch} does not match the expected member epoch {member.member_epoch}.",
            )

    def validate_offset_delete(self) -> None:
        """Accept always: offsets of topics without consumers may be deleted at any time."""

    def tombstones(self) -> list[CoordinatorRecord]:
        return self.tombstones_with(dict.fromkeys(self.members))

    def tombstones_replacing(self, leaving_id: str, joining_id: str) -> list[CoordinatorRecord]:
        """The same, when an earlier record of the same step has put one member into another's place."""
        return self.tombstones_with([joining_id if member == leaving_id else member for member in self.members])

    def tombstones_with(self, member_ids: Iterable[str]) -> list[CoordinatorRecord]:
        """The records that delete the group and these members."""
        member_ids = list(member_ids)
        return [
            *(records.current_tombstone(self.group_id, member_id) for member_id in member_ids),
            *(records.target_tombstone(self.group_id, member_id) for member_id in member_ids),
            records.target_epoch_tombstone(self.group_id),
            *(records.member_tombstone(self.group_id, member_id) for member_id in member_ids),
            *(records.regex_tombstone(self.group_id, regex) for regex in self.resolved_regexes),
            records.partition_metadata_tombstone(self.group_id),
            records.epoch_tombstone(self.group_id),
        ]

    def creation_records(self) -> list[CoordinatorRecord]:
        """The records that make this group, which has been built in memory (from a classic one)."""
        members = self.members.values()
        return [
            *(records.member_record(self.group_id, member) for member in members),
            records.epoch_record(self.group_id, self.group_epoch, self.metadata_hash),
            *(
                records.target_record(self.group_id, member_id, self.target_assignment.get(member_id, {}))
                for member_id in self.members
            ),
            records.target_epoch_record(self.group_id, self.assignment_epoch, self.assignment_timestamp_ms),
            *(records.current_record(self.group_id, member) for member in members),
        ]

    # Replay

    def update_state(self) -> None:
        """The state is computed when it is asked for: loading a large group would compute it for every record."""

    def _member_changed(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        if old is not None:
            self._free(old.assigned, old.member_epoch)
            self._free(old.pending_revocation, old.member_epoch)
            self._count(old, -1)
            if old.instance_id is not None and (new is None or new.instance_id != old.instance_id):
                self.static_members.pop(old.instance_id, None)
        if new is not None:
            self._own(new.assigned, new.member_epoch)
            self._own(new.pending_revocation, new.member_epoch)
            self._count(new, 1)
            if new.instance_id is not None:
                self.static_members[new.instance_id] = new.member_id
        self.homogeneous = is_homogeneous(self.regex_subscribers, self.subscribed_topic_names, len(self.members))

    def _count(self, member: ConsumerGroupMember, step: int) -> None:
        for counts, name in ((self.server_assignors, member.server_assignor), (self.regex_subscribers, member.regex)):
            if name:
                counts[name] += step
                if not counts[name]:
                    del counts[name]
        if member.classic is not None:
            self.classic_member_count += step
            for name, _ in member.classic.protocols:
                self._classic_protocols[name] += step

    def _free(self, assignment: AssignmentWithEpochs, epoch: int) -> None:
        for topic_id, partitions in assignment.items():
            owners = self._partition_epochs.get(topic_id, {})
            for partition in partitions:
                # Another member may already have it, at its own epoch.
                if owners.get(partition) == epoch:
                    del owners[partition]
            if not owners:
                self._partition_epochs.pop(topic_id, None)

    def _own(self, assignment: AssignmentWithEpochs, epoch: int) -> None:
        for topic_id, partitions in assignment.items():
            owners = self._partition_epochs.setdefault(topic_id, {})
            for partition in partitions:
                assert owners.get(partition, FREE) < epoch or epoch < 0, (
                    f"{self!r}: partition {partition} is given out at epoch {epoch}, and owned at {owners[partition]}"
                )
                owners[partition] = epoch


def is_homogeneous(regexes: Mapping[str, int], topics: SubscriptionCounts, members: int) -> bool:
    """Return whether all members consume the same topics, by the same names or all by the same expression."""
    if not regexes:
        return all(count.by_name == members for count in topics.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count == (0, 1) for count in topics.values())


def _stale_error(member: ConsumerGroupMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH
