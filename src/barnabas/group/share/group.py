"""ShareGroup: a group whose members share partitions, all of it from records (control plane).

    EMPTY   no members
    STABLE  some

A partition may be assigned to several members, since records are given out one by one (`share.share_partition`); so nobody waits
for anybody, and a member is where the target assignment wants it as soon as it has heard of it.

Before a partition is assigned its state must have been begun with the share coordinator. The group keeps which are (`StatePartitions`):

    initializing ──persister──► initialized ──delete──► deleting ──persister──► gone

Invariant: members, epochs and `state_partitions` move in `replay` only.

Source: Kafka classes `ShareGroup`, `ShareGroupMember`, `ShareGroupStatePartitionMetadataInfo`; KIP-932.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.group import ExpiryBase, GroupType, PartitionCheck
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_environment import TopicSubscribers
from barnabas.group.modern_group import NO_ASSIGNMENT, Assignment, ModernGroup
from barnabas.group.share import records
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupStatePartitionMetadataValue,
)

LEAVE_EPOCH = -1
STABLE = 0
"""The only state of a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMember:
    """One member; replaced, never altered.

    Attributes:
        member_epoch: 0 before its first assignment.
        previous_member_epoch: where it was before; a lost answer makes a member repeat it.
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
        """As its record says."""
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
        )

    def with_assignment(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareGroupMember:
        """As its record says; None: the member is about to go."""
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


class TopicPartitions(NamedTuple):
    """Partitions of one topic, and when they were noted (epoch milliseconds)."""

    name: str
    partitions: frozenset[int]
    timestamp_ms: int


class StatePartitions(NamedTuple):
    """Where the group's partitions are with the share coordinator, by topic id; of topics being deleted the name."""

    initializing: Mapping[bytes, TopicPartitions]
    initialized: Mapping[bytes, TopicPartitions]
    deleting: Mapping[bytes, str]

    @classmethod
    def from_record(cls, value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> StatePartitions:
        """As the record says, noted now."""
        return cls(
            {
                bytes(topic.topic_id): TopicPartitions(topic.topic_name, frozenset(topic.partitions), now_ms)
                for topic in value.initializing_topics
            },
            {
                bytes(topic.topic_id): TopicPartitions(topic.topic_name, frozenset(topic.partitions), now_ms)
                for topic in value.initialized_topics
            },
            {bytes(topic.topic_id): topic.topic_name for topic in value.deleting_topics},
        )


NO_STATE_PARTITIONS = StatePartitions({}, {}, {})


class ShareGroupState(Enum):
    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(ModernGroup[ShareGroupMember]):
    """One share group."""

    type = GroupType.SHARE
    protocol_type = "share"

    def __init__(self, group_id: str, subscribers: TopicSubscribers) -> None:
        self.state = ShareGroupState.EMPTY
        self.state_partitions = NO_STATE_PARTITIONS
        super().__init__(group_id, subscribers)

    def state_name(self) -> str:
        return self.state.value

    def has_unassigned_partitions(self) -> bool:
        """Whether partitions of a subscribed topic have been initialized since the target assignment was computed."""
        if self.is_empty or not self.state_partitions.initialized:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.target_assignment.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            topic.name in self.subscribed_topic_names and frozenset(assigned.get(topic_id, ())) != topic.partitions
            for topic_id, topic in self.state_partitions.initialized.items()
        )

    # -- what may be done to it --------------------------------------------------------------------------------------

    def validate_offset_commit(
        self,
        member_id: str,
        group_instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> PartitionCheck | None:
        """A share group has no committed offsets. Raises: KafkaError GROUP_ID_NOT_FOUND."""
        raise self._no_consumer_group()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise self._no_consumer_group()

    def validate_offset_delete(self) -> None:
        raise self._no_consumer_group()

    def _no_consumer_group(self) -> KafkaError:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def tombstones(self) -> list[CoordinatorRecord]:
        member_ids = list(self.members)
        return [
            *(record for member_id in member_ids for record in records.assignment_tombstones(self.group_id, member_id)),
            *(records.member_tombstone(self.group_id, member_id) for member_id in member_ids),
            *records.group_tombstones(self.group_id),
        ]

    def offset_expiry_base(self) -> ExpiryBase | None:
        return None

    def should_expire(self, config: GroupCoordinatorConfig) -> bool:
        return False

    # -- replay ------------------------------------------------------------------------------------------------------

    def update_state(self) -> None:
        self.state = ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY
