"""The records of `__consumer_offsets` that committed offsets use.

    type 1  OffsetCommitKey(group, topic, partition) -> OffsetCommitValue(offset, leaderEpoch, metadata, commitTimestamp, topicId)

Versions written are those of Kafka 4.4: OffsetCommitValue 4 (1 when the request carries its own retention time, since only
that version has an expiry), GroupMetadataValue 3. Type 0 is how brokers before 0.9 wrote offsets; it is read as type 1.

Source: Kafka class `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.group.offset_store import OffsetAndMetadata

LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1

_OFFSET_COMMIT_VERSION = 4
_OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1


def offset_commit_record(group_id: str, topic: str, partition: int, offset: OffsetAndMetadata) -> CoordinatorRecord:
    """A committed offset."""
    expires = offset.expire_timestamp_ms is not None
    value = OffsetCommitValue(
        offset=offset.committed_offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms if offset.expire_timestamp_ms is not None else -1,
        topic_id=offset.topic_id,
    )
    version = _OFFSET_COMMIT_VERSION_WITH_EXPIRY if expires else _OFFSET_COMMIT_VERSION
    return CoordinatorRecord(OFFSET_COMMIT, _offset_key(group_id, topic, partition), value, version)


def offset_commit_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The end of a committed offset."""
    return CoordinatorRecord(OFFSET_COMMIT, _offset_key(group_id, topic, partition), None)


def _offset_key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)
