"""Group: what groups of every type have in common.

    classic     JoinGroup, SyncGroup: the members assign (ClassicGroup)
    consumer    ConsumerGroupHeartbeat: the coordinator assigns (KIP-848)
    share       ShareGroupHeartbeat: members share partitions (KIP-932)
    streams     StreamsGroupHeartbeat: tasks of a topology (KIP-1071)

A shard keeps groups of all types in one map; a group id has one type at a time. Offsets, listing, deletion and expiry use the methods
here, so they do not depend on the type. Types differ in their records and requests, which are in the modules of each type.

Invariant: durable state of a group moves in `replay` of its type only; the methods here only read it.

Source: Kafka's interface `Group`, `CommitPartitionValidator`, `OffsetExpirationCondition`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ListGroupsResponse

if TYPE_CHECKING:
    from barnabas.coordinator.result import CoordinatorRecord
    from barnabas.group.group_config import GroupCoordinatorConfig
    from barnabas.group.offset_store import OffsetAndMetadata

PartitionCheck = Callable[[str, bytes, int], ErrorCode]
"""Checks one partition (topic name, topic id, index) of a commit: NONE, or its error (KIP-1251)."""

ExpiryBase = Callable[["OffsetAndMetadata"], int]
"""From when an offset's retention counts, epoch milliseconds."""


class OffsetCommitter(NamedTuple):
    """The member, or other client, that commits offsets.

    Attributes:
        epoch: the member's generation or epoch; -1 if the client is no member.
        version: of OffsetCommit or, if `is_transactional`, of TxnOffsetCommit.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    is_transactional: bool
    version: int

    @property
    def names_no_member(self) -> bool:
        """Whether it gives neither member nor epoch: an administrator, or a producer older than KIP-447."""
        return self.epoch == -1 and not self.member_id and self.instance_id is None


class GroupType(Enum):
    """The types, by the names that ListGroups filters by."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Group(ABC):
    """One group of any type."""

    group_id: str
    type: ClassVar[GroupType]

    @property
    @abstractmethod
    def protocol_name_of_type(self) -> str:
        """The protocol type that ListGroups shows, such as "consumer"; empty if the group has no protocol type."""

    @abstractmethod
    def state_name(self) -> str:
        """The state as Kafka's tools show it, such as "Stable"."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @abstractmethod
    def has_member(self, member_id: str) -> bool:
        """Return whether this is the id of a member."""

    def unknown_member(self, member_id: str) -> KafkaError:
        """Return the error for an id that is not a member's."""
        return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")

    @property
    @abstractmethod
    def member_count(self) -> int:
        """How many members the group has."""

    @abstractmethod
    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Return whether a member consumes the topic; its offsets are then neither deleted nor expired."""

    def listed(self) -> ListGroupsResponse.ListedGroup:
        """For ListGroups."""
        return ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_name_of_type,
            group_state=self.state_name(),
            group_type=self.type.value,
        )

    @abstractmethod
    def validate_offset_commit(self, committer: OffsetCommitter) -> PartitionCheck | None:
        """Check that a commit may be accepted.

        Returns: a check to make for each partition; None if all are accepted.
        Raises: KafkaError, by type of group.
        """

    @abstractmethod
    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that offsets may be fetched; without a member id and with epoch -1 it accepts every client.

        Raises: KafkaError UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION, GROUP_ID_NOT_FOUND.
        """

    @abstractmethod
    def validate_offset_delete(self) -> None:
        """Check that offsets of topics without consumers may be deleted. Raises: KafkaError."""

    def validate_delete_group(self) -> None:
        """Check that the group may be deleted. Raises: KafkaError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    @abstractmethod
    def tombstones(self) -> Sequence[CoordinatorRecord]:
        """The records that delete the group from the log, offsets aside."""

    def on_removed(self) -> None:  # noqa: B027 -- most types keep nothing about their groups elsewhere
        """Forget what is kept about a removed group outside of it."""

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> list[CoordinatorRecord]:
        """Return the records that remove deleted topics from what the group keeps; offsets aside."""
        return []

    def offset_expiry_base(self) -> ExpiryBase | None:
        """Return the function that finds when the retention of an offset begins; None while the group's offsets do not expire."""
        return lambda offset: offset.commit_timestamp_ms

    def should_expire(self, config: GroupCoordinatorConfig) -> bool:
        """Return whether the group is deleted when it is empty and its last offset has expired."""
        return True

    def request_metadata_refresh(self) -> None:  # noqa: B027 -- the members of some groups watch the metadata themselves
        """Check the consumed topics at the next heartbeat: one has changed."""
