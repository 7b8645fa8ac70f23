"""Committed offsets of one shard: group -> topic -> partition -> offset.

Offsets that were committed inside a transaction are kept apart, by producer, until the transaction's marker is replayed:
commit moves them over (unless a later plain commit is already there), abort drops them.

Invariant: a group, topic or producer without offsets has no entry, so that empty means absent.

Sources: Kafka classes `OffsetAndMetadata`, `OffsetMetadataManager.Offsets`; KIP-98 (offsets in transactions).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.messages import LegacyOffsetCommitValue, OffsetCommitValue
from barnabas.protocol.primitives import ZERO_UUID


class OffsetAndMetadata(NamedTuple):
    """One committed offset.

    Args:
        committed_offset: the next offset to consume.
        leader_epoch: of the last consumed record, -1 unknown.
        metadata: the client's note; a null one is kept as an empty string, as in Kafka's record.
        commit_timestamp_ms: when it was committed.
        expire_timestamp_ms: when it expires, if the request has a retention time (OffsetCommit 2-4).
        topic_id: the topic's id when it was committed, ZERO_UUID if unknown.
        record_offset: where its record is in the log, -1 before it is there.
    """

    committed_offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: bytes = ZERO_UUID
    record_offset: int = -1

    @classmethod
    def from_record(cls, record_offset: int, value: OffsetCommitValue) -> OffsetAndMetadata:
        """Read it from its record."""
        return cls(
            committed_offset=value.offset,
            leader_epoch=value.leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=None if value.expire_timestamp == -1 else value.expire_timestamp,
            topic_id=value.topic_id,
            record_offset=record_offset,
        )

    @classmethod
    def from_legacy_record(cls, record_offset: int, value: LegacyOffsetCommitValue) -> OffsetAndMetadata:
        """Read it from a record of the oldest type, which has fewer fields."""
        return cls(value.offset, -1, value.metadata, value.commit_timestamp, record_offset=record_offset)

    def is_of_topic(self, topic_id: bytes) -> bool:
        """Return whether it may have been committed for the topic that now has this id (unknown ids match all)."""
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


TopicOffsets = dict[str, dict[int, OffsetAndMetadata]]


class Offsets:
    """Offsets by group, topic and partition."""

    __slots__ = ("by_group",)

    def __init__(self) -> None:
        self.by_group: dict[str, TopicOffsets] = {}

    def __repr__(self) -> str:
        return f"<Offsets {sum(1 for _ in self)}>"

    def __iter__(self) -> Iterator[tuple[str, str, int, OffsetAndMetadata]]:
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    yield group_id, topic, partition, offset

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        return self.by_group.get(group_id, {}).get(topic, {}).get(partition)

    def put(self, group_id: str, topic: str, partition: int, offset: OffsetAndMetadata) -> None:
        self.by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove one; nothing happens when it is not there."""
        topics = self.by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None:
            return
        if not partitions:
            del topics[topic]
        if not topics:
            del self.by_group[group_id]


class OffsetStore:
    """The offsets of a shard, with those of open transactions."""

    def __init__(self) -> None:
        self.offsets = Offsets()
        self.pending: dict[int, Offsets] = {}

    def __repr__(self) -> str:
        return f"<OffsetStore {self.offsets!r} pending={self.pending}>"

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction has an offset for the partition."""
        return any(offsets.get(group_id, topic, partition) is not None for offsets in self.pending.values())

    def has_open_transactions(self, group_id: str) -> bool:
        """Return whether an open transaction has any offset of the group."""
        return any(group_id in offsets.by_group for offsets in self.pending.values())

    def replay(self, group_id: str, topic: str, partition: int, offset: OffsetAndMetadata, producer_id: int) -> None:
        """Take in a committed offset (producer_id -1: not in a transaction)."""
        if producer_id < 0:
            self.offsets.put(group_id, topic, partition, offset)
        else:
            self.pending.setdefault(producer_id, Offsets()).put(group_id, topic, partition, offset)

    def replay_tombstone(self, group_id: str, topic: str, partition: int) -> None:
        """Forget an offset, also one that is pending."""
        self.offsets.remove(group_id, topic, partition)
        for offsets in self.pending.values():
            offsets.remove(group_id, topic, partition)

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Settle a producer's pending offsets."""
        pending = self.pending.pop(producer_id, None)
        if pending is None or not committed:
            return
        for group_id, topic, partition, offset in pending:
            current = self.offsets.get(group_id, topic, partition)
            # A plain commit may have been written after the transactional one and before the marker: the later record wins.
            if current is None or offset.record_offset > current.record_offset:
                self.offsets.put(group_id, topic, partition, offset)
