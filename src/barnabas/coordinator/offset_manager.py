"""Committing, fetching, deleting and expiring offsets of one shard (control plane).

A commit is accepted from the members of the present generation, or from anyone when the group is empty and the request
names no generation (a "simple" group: a consumer that assigns partitions itself, or an admin client). The order of the checks is Kafka's,
because clients react to the first error they see.

Expiry (every offsets.retention.check.interval.ms), for offsets of topics that no member subscribes to:

    group without a protocol type    offsets.retention after the commit
    Empty                            offsets.retention after the group became empty
    consumers, Stable                offsets.retention after the commit
    else                             never
    commit with its own time (v2-4)  at that time

An empty group whose offsets have all gone goes too.

Sources: Kafka class `OffsetMetadataManager`; KIP-211 (expiry), KIP-447 (require stable), KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.classic_group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.group_config import GroupCoordinatorConfig
from barnabas.coordinator.group_records import group_metadata_tombstone, offset_commit_record, offset_commit_tombstone
from barnabas.coordinator.offset_store import OffsetAndMetadata, OffsetStore
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.protocol.primitives import ZERO_UUID

INVALID_OFFSET = -1
DEFAULT_RETENTION_TIME = -1
GROUP_ID_NOT_FOUND_SINCE = 9
"""The OffsetCommit version from which a missing group has its own error."""


class OffsetManager:
    """The offsets of one shard."""

    def __init__(self, config: GroupCoordinatorConfig, now_ms: Callable[[], int], store: OffsetStore) -> None:
        self._config = config
        self._now_ms = now_ms
        self._store = store

    # -- commit ------------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest) -> CoordinatorResult[OffsetCommitResponse]:
        """Turn an accepted commit into records; offsets with too much metadata are refused one by one."""
        now_ms = self._now_ms()
        retention_ms = request.retention_time_ms
        expire_ms = None if retention_ms == DEFAULT_RETENTION_TIME else now_ms + retention_ms
        records: list[CoordinatorRecord] = []
        response = OffsetCommitResponse()
        for topic in request.topics:
            results = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                error = ErrorCode.NONE
                if _java_length(metadata) > self._config.offset_metadata_max_bytes:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
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

    # -- fetch -------------------------------------------------------------------------------------------------------

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

    # -- delete and expire -------------------------------------------------------------------------------------------

    def delete(self, group: ClassicGroup, request: OffsetDeleteRequest) -> CoordinatorResult[OffsetDeleteResponse]:
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

    def on_topics_deleted(self, topics: dict[str, bytes]) -> list[CoordinatorRecord]:
        """Tombstones for every offset of deleted topics (name to id; a newer topic of the same name keeps its offsets)."""
        seen: dict[tuple[str, str, int], None] = {}
        for offsets in (self._store.offsets, *self._store.pending.values()):
            for group_id, topic, partition, offset in offsets:
                if topic in topics and offset.is_of_topic(topics[topic]):
                    seen[group_id, topic, partition] = None
        return [offset_commit_tombstone(*key) for key in seen]

    def expire(self, group: ClassicGroup) -> list[CoordinatorRecord]:
        """Tombstones for a group's expired offsets, and for the group if it is empty and keeps none."""
        records: list[CoordinatorRecord] = []
        base_of = _expiry_base(group)
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
        if all_expired and group.is_empty and not self._store.has_open_transactions(group.group_id):
            records.append(group_metadata_tombstone(group.group_id))
        return records

    def _is_expired(self, offset: OffsetAndMetadata, base_ms: int) -> bool:
        if offset.expire_timestamp_ms is not None:
            return self._now_ms() >= offset.expire_timestamp_ms
        return self._now_ms() - base_ms >= self._config.offsets_retention_ms


def validate_commit(group: ClassicGroup, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
    """Check that a commit may be accepted.

    Raises:
        KafkaError: COORDINATOR_NOT_AVAILABLE (the group is being unloaded), UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
            ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS (a member commits between its join and its sync).
    """
    if group.is_in_state(ClassicGroupState.DEAD):
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation_id < 0 and group.is_empty:
        return
    if generation_id >= 0 or member_id or group_instance_id is not None:
        group.validate_member(member_id, group_instance_id)
        if generation_id != group.generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    elif not group.is_empty:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.is_in_state(ClassicGroupState.COMPLETING_REBALANCE):
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def validate_delete(group: ClassicGroup) -> None:
    """Check that offsets may be deleted: the group is empty, or tells its subscriptions.

    Raises: KafkaError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
    """
    if group.is_in_state(ClassicGroupState.DEAD):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty and not group.uses_consumer_group_protocol:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)


def _expiry_base(group: ClassicGroup) -> Callable[[OffsetAndMetadata], int] | None:
    """From when the retention of the group's offsets counts; None: they do not expire now."""
    if group.protocol_type is None:
        return lambda offset: offset.commit_timestamp_ms
    if group.is_empty:
        since_ms = group.current_state_timestamp_ms
        return lambda offset: since_ms if since_ms >= 0 else offset.commit_timestamp_ms
    knows_subscriptions = group.uses_consumer_group_protocol and group.subscribed_topics is not None
    if knows_subscriptions and group.is_in_state(ClassicGroupState.STABLE):
        return lambda offset: offset.commit_timestamp_ms
    return None


def _unknown_offset(index: int, error: ErrorCode) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
    return OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=INVALID_OFFSET, metadata="", error_code=error
    )


def _java_length(text: str) -> int:
    """The length as Java counts it: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
