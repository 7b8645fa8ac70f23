"""The records of `__transaction_state` (control plane).

    type 0  TransactionLogKey(transactionalId) -> TransactionLogValue(producerId, epoch, timeout, status, partitions, times)

A record holds everything about its transactional id, so the last one of each id is the state, and compaction may drop the rest.
A tombstone ends an expired id. Version 0 of the value is written while the feature transaction.version is at 0; version 1, flexible, adds
the previous and the next producer id and the client's transaction version as tagged fields (KIP-890), and the next epoch (KIP-939).

Source: Kafka class `TransactionLog`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import TransactionLogKey, TransactionLogValue
from barnabas.transaction.transaction_metadata import NO_PRODUCER_EPOCH, TopicPartition, TransactionMetadata
from barnabas.transaction.transaction_state import BY_NUMBER, TransactionState

TRANSACTION_LOG = 0
_FLEXIBLE_SINCE = 1
"""The level of transaction.version from which values are flexible."""


def transaction_record(metadata: TransactionMetadata, transaction_version: int) -> CoordinatorRecord:
    """The state of a transactional id.

    Args:
        transaction_version: the finalized level of the feature, which decides the value's version.
    """
    is_empty = metadata.state is TransactionState.EMPTY
    assert not (is_empty and metadata.partitions), f"{metadata!r} has partitions and no transaction"
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.number,
        transaction_partitions=None if is_empty else _grouped(metadata.partitions),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
    )
    version = 1 if transaction_version >= _FLEXIBLE_SINCE else 0
    if version:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.next_producer_epoch = metadata.next_producer_epoch
        value.client_transaction_version = metadata.client_transaction_version
    return CoordinatorRecord(TRANSACTION_LOG, _key(metadata.transactional_id), value, version)


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    """The end of a transactional id."""
    return CoordinatorRecord(TRANSACTION_LOG, _key(transactional_id), None)


def metadata_of(
    transactional_id: str, value: TransactionLogValue, last_producer_epoch: int = NO_PRODUCER_EPOCH
) -> TransactionMetadata:
    """The state that a record holds.

    Args:
        last_producer_epoch: what the log does not know.
    """
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=BY_NUMBER[value.transaction_status],
        partitions=frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        last_producer_epoch=last_producer_epoch,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions by topic, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _grouped(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic(partitions).items()
    ]


def _key(transactional_id: str) -> TransactionLogKey:
    return TransactionLogKey(transactional_id=transactional_id)
