"""A member of a share group, as its records show it; replaced, never altered.

Source: Kafka class `ShareGroupMember`; KIP-932.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from barnabas.group.epoch_group import LEAVE_EPOCH
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment
from barnabas.protocol.messages import ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue

STABLE = 0
"""The only state of a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
    """One member.

    Attributes:
        member_epoch: 0 before its first assignment.
        previous_member_epoch: the epoch before; a member that lost a response repeats it.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: int = STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = field(default_factory=lambda: NO_ASSIGNMENT)

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareGroupMember:
        """Return the member after a MemberMetadata record."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareGroupMember:
        """Return the member after a CurrentAssignment record; None stands for its tombstone."""
        if value is None:
            return replace(self, member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned=NO_ASSIGNMENT)
        assigned = {bytes(topic.topic_id): frozenset(topic.partitions) for topic in value.assigned_partitions}
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=assigned,
        )
