"""ModernGroup: epochs, subscriptions and target assignment of a group that the coordinator assigns.

The base of consumer groups (KIP-848) and share groups (KIP-932). A member is a value that is replaced, never altered; `update_member` and
`remove_member` are called in `replay` and keep the counts beside the members true.

Invariants:
- `subscribed_topic_names` counts, for each topic, the members that name it and the resolved expressions that match it;
- `inverted_target_assignment` is `target_assignment` from the partitions' side;
- `TopicSubscribers` names this group for exactly the topics of `subscribed_topic_names`.

Source: Kafka classes `ModernGroup`, `SubscriptionCount`, `Assignment`, `TargetAssignmentMetadata`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from barnabas.group.epoch_group import EpochGroup
from barnabas.group.group_environment import TopicSubscribers

Assignment = Mapping[bytes, frozenset[int]]
"""Topic id to partition indexes; topics without partitions are left out."""

NO_ASSIGNMENT: Assignment = {}


class ModernMember(Protocol):
    """The part of a member that the base needs."""

    @property
    def member_id(self) -> str: ...
    @property
    def subscribed_topic_names(self) -> frozenset[str]: ...


M = TypeVar("M", bound=ModernMember)


class SubscriptionCount(NamedTuple):
    """How many members consume a topic by its name, and how many expressions match it."""

    by_name: int = 0
    by_regex: int = 0


SubscriptionCounts = dict[str, SubscriptionCount]


def add_to_counts(counts: SubscriptionCounts, topics: Iterable[str], *, by_name: int = 0, by_regex: int = 0) -> None:
    """Count topics up or down; a topic that nothing consumes any more is left out."""
    for topic in topics:
        before = counts.get(topic, SubscriptionCount())
        after = SubscriptionCount(before.by_name + by_name, before.by_regex + by_regex)
        assert min(after) >= 0, f"{topic} is counted down to {after}"
        if after == (0, 0):
            counts.pop(topic, None)
        else:
            counts[topic] = after


class ModernGroup(EpochGroup[M]):
    """One group that the coordinator assigns.

    Attributes:
        homogeneous: all members consume the same topics, so that an assignor may take the short way.
    """

    def __init__(self, group_id: str, subscribers: TopicSubscribers) -> None:
        super().__init__(group_id)
        self._subscribers = subscribers
        self.subscribed_topic_names: SubscriptionCounts = {}
        self.homogeneous = True
        self.target_assignment: dict[str, Assignment] = {}
        self.inverted_target_assignment: dict[bytes, dict[int, str]] = {}

    def is_subscribed_to_topic(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names

    def set_group_epoch(self, epoch: int, metadata_hash: int) -> None:
        """The group has reached an epoch."""
        self.group_epoch = epoch
        self.metadata_hash = metadata_hash
        self.update_state()

    def set_target_assignment_metadata(self, assignment_epoch: int, timestamp_ms: int) -> None:
        """Set the group epoch of the target assignment."""
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp_ms = timestamp_ms
        self.update_state()

    @abstractmethod
    def update_state(self) -> None:
        """Compute what the state is now, after an epoch or a member has changed."""

    def update_target_assignment(self, member_id: str, assignment: Assignment) -> None:
        """Set a member's target."""
        self._invert(member_id, self.target_assignment.get(member_id, NO_ASSIGNMENT), assignment)
        self.target_assignment[member_id] = assignment

    def remove_target_assignment(self, member_id: str) -> None:
        """A member has no target."""
        self._invert(member_id, self.target_assignment.pop(member_id, NO_ASSIGNMENT), NO_ASSIGNMENT)

    def _invert(self, member_id: str, before: Assignment, after: Assignment) -> None:
        for topic_id in {**before, **after}:
            old, new = before.get(topic_id, frozenset()), after.get(topic_id, frozenset())
            owners = self.inverted_target_assignment.setdefault(topic_id, {})
            for partition in old - new:
                # An earlier record of the same step may have given the partition to another member.
                if owners.get(partition) == member_id:
                    del owners[partition]
            owners.update(dict.fromkeys(new - old, member_id))
            if not owners:
                del self.inverted_target_assignment[topic_id]

    def update_member(self, member: M) -> None:
        """Add or change a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count_names(old, member)
        self._member_changed(old, member)
        self.update_state()

    def remove_member(self, member_id: str) -> None:
        """Remove a member if it exists."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._count_names(old, None)
            self._member_changed(old, None)
            self.update_state()

    def _member_changed(self, old: M | None, new: M | None) -> None:
        """Keep further counts of the type; `homogeneous` among them."""
        self.homogeneous = all(count.by_name == len(self.members) for count in self.subscribed_topic_names.values())

    def _count_names(self, old: M | None, new: M | None) -> None:
        before = frozenset[str]() if old is None else old.subscribed_topic_names
        after = frozenset[str]() if new is None else new.subscribed_topic_names
        self.change_subscriptions(sorted(after - before), by_name=1)
        self.change_subscriptions(sorted(before - after), by_name=-1)

    def change_subscriptions(self, topics: Iterable[str], *, by_name: int = 0, by_regex: int = 0) -> None:
        """Count topics up or down, and keep the shard's `TopicSubscribers` up to date."""
        for topic in topics:
            add_to_counts(self.subscribed_topic_names, (topic,), by_name=by_name, by_regex=by_regex)
            if topic in self.subscribed_topic_names:
                self._subscribers.add(self.group_id, topic)
            else:
                self._subscribers.remove(self.group_id, topic)

    def on_removed(self) -> None:
        self.unsubscribe_all()

    def unsubscribe_all(self) -> None:
        """Remove the group from `TopicSubscribers`."""
        for topic in self.subscribed_topic_names:
            self._subscribers.remove(self.group_id, topic)
        self.subscribed_topic_names = {}

    def counts_with(self, old: M | None, new: M | None) -> SubscriptionCounts:
        """Return the counts with a member changed, added or removed."""
        counts = dict(self.subscribed_topic_names)
        add_to_counts(counts, () if old is None else old.subscribed_topic_names, by_name=-1)
        add_to_counts(counts, () if new is None else new.subscribed_topic_names, by_name=1)
        return counts
