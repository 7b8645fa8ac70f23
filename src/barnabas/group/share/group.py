"""ShareGroup: a group whose members share partitions; its whole state is in records.

    EMPTY   no members
    STABLE  some

A partition may be assigned to several members, since records are delivered one by one (`share.share_partition`). So no member waits
for another, and a member reaches its target assignment with its next heartbeat.

Before a partition is assigned its state must be initialized in the share coordinator. The group keeps track of that (`StatePartitions`):

    initializing ──persister──► initialized ──delete──► deleting ──persister──► (removed)

Invariant: members, epochs and `state_partitions` move in `replay` only.

Source: Kafka classes `ShareGroup`, `ShareGroupMember`, `ShareGroupStatePartitionMetadataInfo`; KIP-932.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.group.epoch_group import LEAVE_EPOCH
from barnabas.group.group import ExpiryBase, GroupType, OffsetCommitter, PartitionCheck
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_environment import TopicSubscribers
from barnabas.group.modern_group import ModernGroup
from barnabas.group.share import records
from barnabas.group.share.member import ShareGroupMember
from barnabas.group.share.partitions import NO_STATE_PARTITIONS, StatePartitions, TopicPartitions
from barnabas.protocol.errors import ErrorCode, KafkaError

__all__ = ["LEAVE_EPOCH", "NO_STATE_PARTITIONS", "ShareGroup", "ShareGroupState", "StatePartitions", "TopicPartitions"]


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
        """Return whether partitions of a subscribed topic have been initialized since the target assignment was computed."""
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

    def validate_offset_commit(self, committer: OffsetCommitter) -> PartitionCheck | None:
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

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> list[CoordinatorRecord]:
        """Forget the partitions of deleted topics; the share coordinator deletes their state by itself."""
        state = self.state_partitions
        if not any(topic_id in part for topic_id in topic_ids for part in state):
            return []
        kept = StatePartitions(
            {topic_id: topic for topic_id, topic in state.initializing.items() if topic_id not in topic_ids},
            {topic_id: topic for topic_id, topic in state.initialized.items() if topic_id not in topic_ids},
            {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in topic_ids},
        )
        return [records.state_partitions_record(self.group_id, kept)]

    def offset_expiry_base(self) -> ExpiryBase | None:
        return None

    def should_expire(self, config: GroupCoordinatorConfig) -> bool:
        return False

    def update_state(self) -> None:
        self.state = ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY
