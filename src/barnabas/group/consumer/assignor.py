"""The input and the output of an assignor.

An assignor spreads the partitions of the consumed topics over the members. It is sticky: it starts from what each member has now.
It is a plain function of its input, so that the same group gets the same assignment on every broker.

Sources: Kafka's `org.apache.kafka.coordinator.group.api.assignor`; KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The topics to which a member is subscribed.

    Attributes:
        topic_ids: of topics that exist.
        instance_id: of a static member.
        rack_id: the assignors here ignore it.
    """

    topic_ids: frozenset[bytes]
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group, as an assignor sees it.

    Attributes:
        members: by member id, in the order in which they joined.
        homogeneous: all members consume the same topics.
        assigned: the target of each member in the last assignment.
        owners: the same from the partitions' side: topic id to partition index to member id.
        partition_counts: of every topic that is consumed, by topic id.
        held: partitions that no member may have yet, by topic id (ordered growth).
    """

    members: Mapping[str, MemberSubscription]
    homogeneous: bool
    assigned: Mapping[str, Assignment]
    owners: Mapping[bytes, Mapping[int, str]]
    partition_counts: Mapping[bytes, int]
    held: Mapping[bytes, frozenset[int]] = field(default_factory=dict)

    def assignment_of(self, member_id: str) -> Assignment:
        """Return the target of a member in the last assignment."""
        return self.assigned.get(member_id, NO_ASSIGNMENT)

    def is_assigned(self, topic_id: bytes, partition: int) -> bool:
        """Return whether the last assignment gives the partition to a member."""
        return partition in self.owners.get(topic_id, {})

    def is_held(self, topic_id: bytes, partition: int) -> bool:
        """Return whether no member may have the partition yet."""
        return partition in self.held.get(topic_id, ())


GroupAssignment = dict[str, Assignment]
"""Target partitions by member id; a member that is left out gets none."""

Assignor = Callable[[GroupSpec], GroupAssignment]
