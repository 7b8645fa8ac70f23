"""Committing, fetching, deleting and expiring offsets of one shard.

The group checks whether a client may commit, fetch or delete (`Group.validate_offset_commit` and its like); the rest is the same for every
type.

Expiry (every offsets.retention.check.interval.ms), for offsets of topics that no member subscribes to:

    the group gives a base           offsets.retention after its `offset_expiry_base`: the commit, or when a classic group became empty
    the group gives none             not now
    commit with its own time (v2-4)  at that time

An empty group is deleted with its last offset.

Sources: Kafka class `OffsetMetadataManager`; KIP-211 (expiry), KIP-447 (require stable), KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.group.group import Group, PartitionCheck
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.offset_records import offset_commit_record, offset_commit_tombstone
from barnabas.group.offset_store import OffsetAndMetadata, OffsetStore
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.protocol.primitives import ZERO_UUID

INVALID_OFFSET = -1
DEFAULT_RETENTION_TIME = -1
NEVER_MS = 2**63 - 1
GROUP_ID_NOT_FOUND_SINCE = 9
"""The OffsetCommit version from which the error of a missing group is GROUP_ID_NOT_FOUND."""
TXN_GROUP_ERRORS_SINCE = 6
"""The TxnOffsetCommit version from which a missing group and a stale member epoch have separate errors (KIP-1319)."""


class OffsetManager:
    """The offsets of one shard."""

    def __init__(self, config: GroupCoordinatorConfig, now_ms: Callable[[], int], store: OffsetStore) -> None:
        self._config = config
        self._now_ms = now_ms
        self._store = store

    def commit(
        self, request: OffsetCommitRequest, check: PartitionCheck | None = None
    ) -> CoordinatorResult[OffsetCommitResponse]:
        """Turn an accepted commit into records; partitions that do not pass are refused one by one.

        Args:
            check: the group's own check of each partition, if it has one.
        """
        now_ms = self._now_ms()
        retention_ms = request.retention_time_ms
        # A client may ask for any number of milliseconds; the record's field has 64 bits.
        expire_ms = None if retention_ms == DEFAULT_RETENTION_TIME else min(now_ms + retention_ms, NEVER_MS)
        records: list[CoordinatorRecord] = []
        response = OffsetCommitResponse()
        for topic in request.topics:
            results = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                error = ErrorCode.NONE
                if check is not None:
                    error = check(topic.name, topic.topic_id, partition.partition_index)
                if error is ErrorCode.NONE and _java_length(metadata) > self._config.offset_metadata_max_bytes:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if error is ErrorCode.NONE:
                    offset = OffsetAndMetadata(
                        committed_offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp_ms=now_ms,
                        expire_timestamp_ms=expire_ms,
                        topic_id=topic.topic_id,
                    )
                    records.append(
                        offset_commit_record(request.group_id, topic.name, partition.partition_index, offset)
                    )
                results.append(
                    OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                )
            response.topics.append(
                OffsetCommitResponse.OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=results
                )
            )
        return CoordinatorResult(response, records)

    def commit_transactional(
        self, request: TxnOffsetCommitRequest, version: int, check: PartitionCheck | None = None
    ) -> CoordinatorResult[TxnOffsetCommitResponse]:
        """Turn an accepted commit of a transaction into records; they are pending until the transaction's marker.

        Args:
            check: the group's own check of each partition, if it has one; a failure refuses the whole commit.

        Raises:
            KafkaError: what the check gives; ILLEGAL_GENERATION for STALE_MEMBER_EPOCH before version 6.
        """
        now_ms = self._now_ms()
        records: list[CoordinatorRecord] = []
        response = TxnOffsetCommitResponse()
        for topic in request.topics:
            results = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                error = ErrorCode.NONE
                if _java_length(metadata) > self._config.offset_metadata_max_bytes:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    if check is not None:
                        refuse_transactional(check(topic.name, topic.topic_id, partition.partition_index), version)
                    offset = OffsetAndMetadata(
                        committed_offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp_ms=now_ms,
                        topic_id=topic.topic_id,
                    )
                    records.append(
                        offset_commit_record(request.group_id, topic.name, partition.partition_index, offset)
                    )
                results.append(
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                )
            response.topics.append(
                TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=results
                )
            )
        return CoordinatorResult(response, records)

    def fetch(
        self, request: OffsetFetchRequest.OffsetFetchRequestGroup, *, exists: bool, require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseGroup:
        """Look up offsets; `topics=None` asks for all of the group. Unknown ones have offset -1.

        Args:
            exists: whether the group is there; offsets of a missing group are all unknown.
            require_stable: refuse offsets that an open transaction may still replace (KIP-447).
        """
        response = OffsetFetchResponse.OffsetFetchResponseGroup(group_id=request.group_id)
        topics = self._store.offsets.by_group.get(request.group_id, {}) if exists else {}
        wanted = request.topics
        if wanted is None:
            for name, partitions in topics.items():
                response.topics.append(
                    self._fetched(request.group_id, name, ZERO_UUID, list(partitions), require_stable)
                )
        else:
            for topic in wanted:
                response.topics.append(
                    self._fetched(request.group_id, topic.name, topic.topic_id, topic.partition_indexes, require_stable)
                )
        return response

    def _fetched(
        self, group_id: str, topic: str, topic_id: bytes, partitions: Sequence[int], require_stable: bool
    ) -> OffsetFetchResponse.OffsetFetchResponseTopics:
        offsets = self._store.offsets.by_group.get(group_id, {}).get(topic, {})
        check_pending = require_stable and bool(self._store.pending)
        found = []
        for index in partitions:
            offset = offsets.get(index)
            if check_pending and self._store.has_pending(group_id, topic, index):
                found.append(_unknown_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif offset is None or not offset.is_of_topic(topic_id):
                found.append(_unknown_offset(index, ErrorCode.NONE))
            else:
                found.append(
                    OffsetFetchResponse.OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=offset.committed_offset,
                        committed_leader_epoch=offset.leader_epoch,
                        metadata=offset.metadata,
                    )
                )
        return OffsetFetchResponse.OffsetFetchResponseTopics(name=topic, topic_id=topic_id, partitions=found)

    def delete(self, group: Group, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
        """Delete the offsets of partitions that no member consumes."""
        records: list[CoordinatorRecord] = []
        response = OffsetDeleteResponse()
        for topic in request.topics:
            subscribed = group.is_subscribed_to_topic(topic.name)
            results = []
            for partition in topic.partitions:
                index = partition.partition_index
                error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
                results.append(
                    OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=error)
                )
                if not subscribed and self._has_any(group.group_id, topic.name, index):
                    records.append(offset_commit_tombstone(group.group_id, topic.name, index))
            response.topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        return CoordinatorResult(response, records)

    def _has_any(self, group_id: str, topic: str, partition: int) -> bool:
        store = self._store
        return store.offsets.get(group_id, topic, partition) is not None or store.has_pending(
            group_id, topic, partition
        )

    def delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        """Tombstones for every offset of a group, pending ones too."""
        seen: dict[tuple[str, int], None] = {}
        for offsets in (self._store.offsets, *self._store.pending.values()):
            for topic, partitions in offsets.by_group.get(group_id, {}).items():
                seen.update(((topic, partition), None) for partition in partitions)
        return [offset_commit_tombstone(group_id, topic, partition) for topic, partition in seen]

    def on_topics_deleted(self, topics: Mapping[str, bytes]) -> list[CoordinatorRecord]:
        """Tombstones for every offset of deleted topics (name to id; a newer topic of the same name keeps its offsets)."""
        seen: dict[tuple[str, str, int], None] = {}
        for offsets in (self._store.offsets, *self._store.pending.values()):
            for group_id, topic, partition, offset in offsets:
                if topic in topics and offset.is_of_topic(topics[topic]):
                    seen[group_id, topic, partition] = None
        return [offset_commit_tombstone(*key) for key in seen]

    def expire(self, group: Group) -> list[CoordinatorRecord]:
        """Tombstones for a group's expired offsets, and for the group if it is empty and keeps none."""
        records: list[CoordinatorRecord] = []
        base_of = group.offset_expiry_base()
        all_expired = True
        for topic, partitions in self._store.offsets.by_group.get(group.group_id, {}).items():
            subscribed = group.is_subscribed_to_topic(topic)
            for partition, offset in partitions.items():
                if (
                    base_of is not None
                    and not subscribed
                    and self._is_expired(offset, base_of(offset))
                    and not self._store.has_pending(group.group_id, topic, partition)
                ):
                    records.append(offset_commit_tombstone(group.group_id, topic, partition))
                else:
                    all_expired = False
        if (
            all_expired
            and group.is_empty
            and group.should_expire(self._config)
            and not self._store.has_open_transactions(group.group_id)
        ):
            records += group.tombstones()
        return records

    def _is_expired(self, offset: OffsetAndMetadata, base_ms: int) -> bool:
        if offset.expire_timestamp_ms is not None:
            return self._now_ms() >= offset.expire_timestamp_ms
        return self._now_ms() - base_ms >= self._config.offsets_retention_ms


def refuse_transactional(error: ErrorCode, version: int) -> None:
    """Reject a commit of a transaction, unless `error` is NONE, with an error of its version of TxnOffsetCommit.

    Raises: KafkaError.
    """
    newer = version >= TXN_GROUP_ERRORS_SINCE
    if error in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND) and not newer:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if error is not ErrorCode.NONE:
        raise KafkaError(error)


def _unknown_offset(index: int, error: ErrorCode) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=INVALID_OFFSET, metadata="", error_code=error
    )


def _java_length(text: str) -> int:
    """The length as Java counts it: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
