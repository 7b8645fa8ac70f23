"""The records of `__transaction_state`.

    type 0  TransactionLogKey(transactionalId) -> TransactionLogValue(producerId, epoch, timeout, status, partitions, times)

A record has the whole state of its transactional id, so the last record of an id is its state, and compaction may drop the others.
A tombstone removes an expired id. Version 0 of the value is written while the feature transaction.version is at 0. Version 1 is
flexible; its tagged fields add the previous and next producer id and the client's transaction version (KIP-890), and the next epoch
(KIP-939).

Source: Kafka class `TransactionLog`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import TransactionLogKey, TransactionLogValue
from barnabas.records.record_batch import NO_PRODUCER_EPOCH
from barnabas.transaction.transaction_metadata import TopicPartition, TransactionMetadata
from barnabas.transaction.transaction_state import BY_NUMBER, TransactionState

TRANSACTION_LOG = 0
_FLEXIBLE_SINCE = 1
"""Values are flexible from this level of transaction.version."""


def transaction_record(metadata: TransactionMetadata, transaction_version: int) -> CoordinatorRecord:
    """Return the record of a transactional id's state.

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
    """Return the record that removes a transactional id."""
    return CoordinatorRecord(TRANSACTION_LOG, _key(transactional_id), None)


def metadata_of(
    transactional_id: str, value: TransactionLogValue, last_producer_epoch: int = NO_PRODUCER_EPOCH
) -> TransactionMetadata:
    """Return the state in a record.

    Args:
        last_producer_epoch: not in the record.
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
    """Group partitions by topic, both sorted."""
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
