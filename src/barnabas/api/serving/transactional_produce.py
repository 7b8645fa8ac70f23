"""Produce in transactions: the broker verifies with the transaction coordinator before it appends.

    Produce ─► a guard for each partition in which the transaction has not begun ─► transaction coordinator ─► append with the guards

A partition in which the transaction is open needs no verification, so this costs something once per transaction and partition. On one
node the coordinator responds immediately, and the records are appended in the same turn. If it takes time, the records are copied out of
the connection's buffer, and the connection handles no later request until this one's response has left, so that the client's records
stay in order.

- From version 12 (transaction version 2) the verification adds the partition. While the coordinator is still ending the previous
  transaction the broker retries for a moment (add.partitions.to.txn.retry.backoff.*), which saves the producer sending all records
  again.
- Retriable errors of the coordinator become NOT_ENOUGH_REPLICAS, on which every client retries without refreshing its metadata; before
  version 12 CONCURRENT_TRANSACTIONS is one of them.
- A request's transactional batches must have one producer, else INVALID_PRODUCER_ID_MAPPING.

Sources: Kafka's `ReplicaManager.handleProduceAppend`; KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.held_order import hold_order, pace_holding
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ProduceRequest
from barnabas.records.record_batch import is_transactional, producer_of
from barnabas.replication.partition import Partition
from barnabas.steps import sleep, start
from barnabas.transaction.partitions import TransactionSupportedOperation, add_or_verify
from barnabas.turns import ELEMENT, LOG_OPENED

_LATER = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Verified(NamedTuple):
    """The coordinator's verdicts on the partitions of a request: a guard or an error for each."""

    guards: dict[Partition, VerificationGuard]
    errors: dict[Partition, KafkaError]


class _Batch(NamedTuple):
    partition: Partition
    producer_id: int
    producer_epoch: int
    base_sequence: int


Find = Callable[[RequestContext, ProduceRequest.TopicProduceData, int], Partition | None]


async def verify(context: RequestContext, request: ProduceRequest, find: Find) -> Verified | None:
    """Verify the batches that need it; None if none does.

    Args:
        find: returns the replica of a partition, given its topic's data and its index; None if it is not here.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING.
    """
    batches = await _transactional_batches(context, request, find)
    if len({(batch.producer_id, batch.producer_epoch) for batch in batches}) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    operation = TransactionSupportedOperation.of_produce(context.version)
    if not operation.supports_epoch_bump:
        batches = [b for b in batches if b.partition.topic.config.transaction_partition_verification_enable]
    return await _verify(context, request, batches, operation) if batches else None


async def _transactional_batches(context: RequestContext, request: ProduceRequest, find: Find) -> list[_Batch]:
    found = []
    for data in request.topic_data:
        for wanted in data.partition_data:
            await pace_holding(context, request, ELEMENT)
            records: Any = wanted.records
            if records is None or not is_transactional(records):
                continue
            partition = find(context, data, wanted.index)
            if partition is not None:
                found.append(_Batch(partition, *producer_of(records)))
    return found


async def _verify(
    context: RequestContext, request: ProduceRequest, batches: list[_Batch], operation: TransactionSupportedOperation
) -> Verified:
    assert request.transactional_id is not None, "batches without a transactional id were rejected"
    services = context.services
    config = services.transaction_coordinator.config
    # Time of the loop: a clock that is set back would hold the request for as long.
    longest_ms = min(config.add_partitions_retry_backoff_max_ms, config.request_timeout_ms)
    deadline = services.loop.time() + longest_ms / 1000
    producer = batches[0]
    while True:
        verified = await _begin(context, request, batches, operation)
        if not verified.guards:
            return verified
        by_name = {(partition.topic.name, partition.index): partition for partition in verified.guards}
        asked = start(
            add_or_verify(
                services.transaction_coordinator,
                request.transactional_id,
                producer.producer_id,
                producer.producer_epoch,
                list(by_name),
                operation,
            ),
            services.loop,
        )
        if not asked.done():
            hold_order(context, request)
        codes = await asked
        may_retry = operation.supports_epoch_bump and services.loop.time() < deadline
        if not may_retry or ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values():
            verified.errors.update({by_name[name]: _error(code, operation) for name, code in codes.items()})
            return verified
        hold_order(context, request)
        await sleep(config.add_partitions_retry_backoff_ms / 1000, services.loop)


async def _begin(
    context: RequestContext, request: ProduceRequest, batches: list[_Batch], operation: TransactionSupportedOperation
) -> Verified:
    """Return a guard for each partition that must be verified, or its error."""
    verified = Verified({}, {})
    for batch in batches:
        # To ask a partition opens its log.
        await pace_holding(context, request, LOG_OPENED if batch.partition.open_log is None else ELEMENT)
        try:
            guard = batch.partition.begin_verification(
                batch.producer_id,
                batch.base_sequence,
                batch.producer_epoch,
                supports_epoch_bump=operation.supports_epoch_bump,
            )
        except KafkaError as error:
            verified.errors[batch.partition] = error
        else:
            if guard is not None:
                verified.guards[batch.partition] = guard
    return verified


def _error(code: ErrorCode, operation: TransactionSupportedOperation) -> KafkaError:
    if code is ErrorCode.INVALID_TXN_STATE:
        return KafkaError(code, "Partition was not added to the transaction", for_client=True)
    if code in _LATER or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not operation.supports_epoch_bump):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
            for_client=True,
        )
    return KafkaError(code)
