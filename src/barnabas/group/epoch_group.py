"""EpochGroup: the epochs of a group that the coordinator assigns, and when it checks its topics.

    group epoch       grows when members, subscriptions or the metadata of consumed topics change
    assignment epoch  the group epoch for which the target assignment was computed; behind it, the group is assigning
    member epoch      the assignment epoch that a member has reached; behind it, the member is reconciling

The base of consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071). A member is a value that is replaced, never
altered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from barnabas.group.group import Group
from barnabas.group.topic_hash import group_hash, topic_hash
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode, KafkaError

M = TypeVar("M")

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""The epoch of a static member that has left for a while, and of the heartbeat that says so."""
METADATA_REFRESH_MS = 2_147_483_647


def joins_again(owner_id: str, owner_epoch: int, member_id: str, instance_id: str) -> bool:
    """Return whether the owner of an instance id joins once more, since the response to its join was lost.

    If not, it has left for a while, and the joining member is its successor.

    Raises:
        KafkaError: UNRELEASED_INSTANCE_ID: the owner is another member, and has not left.
    """
    if owner_epoch == STATIC_LEAVE_EPOCH:
        return False
    if owner_id == member_id:
        return True
    raise KafkaError(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
        f"owned by {owner_id} member.",
    )


class EpochGroup(Group, Generic[M]):
    """One group that the coordinator assigns.

    Attributes:
        metadata_hash: the hash of the consumed topics at the group epoch; 0 if the group consumes no topic that exists.
    """

    protocol_type: ClassVar[str]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 1  # A new group counts as assigned: its first member reaches epoch 1 with nothing.
        self.assignment_timestamp_ms = 0
        self.members: dict[str, M] = {}
        self._refresh_at_ms = 0
        self._refresh_epoch = 0

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.group_id} {self.state_name()} epoch={self.group_epoch} "
            f"assignment={self.assignment_epoch} members={list(self.members)}>"
        )

    @property
    def protocol_name_of_type(self) -> str:
        return self.protocol_type

    @property
    def is_empty(self) -> bool:
        return not self.members

    def has_member(self, member_id: str) -> bool:
        return member_id in self.members

    @property
    def member_count(self) -> int:
        return len(self.members)

    def member(self, member_id: str) -> M:
        """A member. Raises: KafkaError UNKNOWN_MEMBER_ID."""
        found = self.members.get(member_id)
        if found is None:
            raise self.unknown_member(member_id)
        return found

    def compute_metadata_hash(self, topics: Iterable[str], hashes: dict[str, int], image: MetadataImage) -> int:
        """The hash of all topics that exist.

        Args:
            hashes: the known hashes by topic name; computed ones are added.
        """
        found = {}
        for topic in topics:
            known = image.topics.by_name.get(topic)
            if known is None:
                continue
            if topic not in hashes:
                hashes[topic] = topic_hash(known, image.cluster)
            found[topic] = hashes[topic]
        return group_hash(found)

    def set_metadata_refresh_deadline(self, deadline_ms: int, group_epoch: int) -> None:
        """Do not check the topics before a deadline (epoch milliseconds), unless the group epoch falls back."""
        self._refresh_at_ms, self._refresh_epoch = deadline_ms, group_epoch

    def request_metadata_refresh(self) -> None:
        self._refresh_at_ms = self._refresh_epoch = 0

    def has_metadata_expired(self, now_ms: int) -> bool:
        """Return whether the topics' metadata must be checked."""
        return now_ms >= self._refresh_at_ms or self.group_epoch < self._refresh_epoch
