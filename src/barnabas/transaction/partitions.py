"""Verify with the transaction coordinator, before an append, that a transaction includes the partitions, or add them.

    operation                 request versions                   the coordinator   partition not in the transaction
    DEFAULT_ERROR             Produce -10, TxnOffsetCommit -3    verifies          INVALID_TXN_STATE
    GENERIC_ERROR_SUPPORTED   Produce 11, TxnOffsetCommit 4      verifies          TRANSACTION_ABORTABLE
    ADD_PARTITION             Produce 12+, TxnOffsetCommit 5+    adds it (transaction version 2)

The errors are those that producers expect of an append: a fenced producer gets INVALID_PRODUCER_EPOCH, and can recover by aborting.
The coordinator is this broker's, or in a cluster that of another one (`remote_partitions`).

Source: Kafka class `AddPartitionsToTxnManager`; KIP-890.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.transaction.transaction_coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from barnabas.transaction.transaction_metadata import TopicPartition

PRODUCE_ADDS_SINCE = 12
PRODUCE_GENERIC_ERROR_SINCE = 11
OFFSET_COMMIT_ADDS_SINCE = 5
OFFSET_COMMIT_GENERIC_ERROR_SINCE = 4
CLIENT_TRANSACTION_VERSION = 2

Errors = dict["TopicPartition", ErrorCode]


class TransactionSupportedOperation(Enum):
    """The answers and operations that a client knows, by the version of its request."""

    DEFAULT_ERROR = 0
    GENERIC_ERROR_SUPPORTED = 1
    ADD_PARTITION = 2

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether the client uses transaction version 2."""
        return self is TransactionSupportedOperation.ADD_PARTITION

    @classmethod
    def of_produce(cls, version: int) -> TransactionSupportedOperation:
        return cls._of(version, PRODUCE_GENERIC_ERROR_SINCE, PRODUCE_ADDS_SINCE)

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> TransactionSupportedOperation:
        return cls._of(version, OFFSET_COMMIT_GENERIC_ERROR_SINCE, OFFSET_COMMIT_ADDS_SINCE)

    @classmethod
    def _of(cls, version: int, generic_since: int, adds_since: int) -> TransactionSupportedOperation:
        if version >= adds_since:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version >= generic_since else cls.DEFAULT_ERROR


async def add_or_verify(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    operation: TransactionSupportedOperation,
) -> Errors:
    """Add partitions to a transaction, or verify that it includes them.

    Returns: the errors by partition, without entries for partitions that are fine; a KafkaError of the coordinator applies to all.
    """
    asked = frozenset(partitions)
    try:
        codes = await _codes(coordinator, (transactional_id, producer_id, producer_epoch, asked), operation)
    except KafkaError as error:
        codes = dict.fromkeys(asked, error.code)
    return {partition: _for_append(code, operation) for partition, code in codes.items() if code}


async def _codes(
    coordinator: TransactionCoordinator,
    producer: tuple[str, int, int, frozenset[TopicPartition]],
    operation: TransactionSupportedOperation,
) -> Errors:
    """Return the code of each partition, or {} if all are fine.

    Raises: KafkaError, which applies to all.
    """
    remote = coordinator.remote_partitions
    if remote is not None and remote.is_for(producer[0]):
        return await remote.ask(*producer, verify_only=not operation.supports_epoch_bump)
    if not operation.supports_epoch_bump:
        return await coordinator.verify_partitions(*producer)
    await coordinator.add_partitions(*producer, CLIENT_TRANSACTION_VERSION)
    return {}


def _for_append(code: ErrorCode, operation: TransactionSupportedOperation) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is TransactionSupportedOperation.DEFAULT_ERROR:
        return ErrorCode.INVALID_TXN_STATE
    return code
