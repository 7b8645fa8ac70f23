"""AddPartitionsToTxn (API key 24, versions 0-5): add partitions to a transaction before writing to them.

- Up to version 3 a request holds one transaction of a client. From version 4 brokers send it for their clients, with any number of
  transactions. With `verify_only` a broker only asks: TRANSACTION_ABORTABLE for a partition that the transaction does not include.
- A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION. Up to version 3 a partition of a coordinator's topic is
  TOPIC_AUTHORIZATION_FAILED. In both cases nothing of the transaction is added: its other partitions are OPERATION_NOT_ATTEMPTED.
- A request of version 4 or later belongs to a client of transaction version 2.

Version 2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 adds batches and verification (KIP-890), 5
TRANSACTION_ABORTABLE.
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.producer_errors import producer_error
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from barnabas.protocol.topic_names import is_internal
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.steps import gather
from barnabas.turns import ELEMENT, pace

BATCHED_SINCE = 4
FENCED_SINCE = 2
EPOCH_BUMP_VERSION = 2

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
_Partition = tuple[str, int]


async def handle(context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Add or verify the partitions of each transaction."""
    if context.version >= BATCHED_SINCE:
        transactions = list(request.transactions)
    else:
        transactions = [
            _Transaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    added = (_one(context, transaction) for transaction in transactions)
    results = await gather(added, context.services.loop)
    if context.version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


async def _one(context: RequestContext, transaction: _Transaction) -> _Result:
    image = context.services.image().topics
    # Brokers, which send the later versions, are asked for the cluster.
    asker = context.asker if context.version < BATCHED_SINCE else None
    partitions: dict[_Partition, ErrorCode] = {}
    missing: dict[_Partition, ErrorCode] = {}
    for topic in transaction.topics:
        await pace(ELEMENT)
        is_refused = context.version < BATCHED_SINCE and is_internal(topic.name)
        if asker is not None and not asker.may(AclOperation.WRITE, ResourceType.TOPIC, topic.name):
            is_refused = True
        for index in topic.partitions:
            await pace(ELEMENT)
            partition = (topic.name, index)
            partitions[partition] = ErrorCode.NONE
            if is_refused:
                missing[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, index) is None:
                missing[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if missing:
        return await _result(transaction, missing, ErrorCode.OPERATION_NOT_ATTEMPTED)
    coordinator = context.services.transaction_coordinator
    asked = (
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        frozenset(partitions),
    )
    try:
        if transaction.verify_only:
            return await _result(transaction, await coordinator.verify_partitions(*asked), ErrorCode.NONE)
        await coordinator.add_partitions(*asked, EPOCH_BUMP_VERSION if context.version >= BATCHED_SINCE else 0)
        code = ErrorCode.NONE
    except KafkaError as error:
        code = producer_error(error, context.version, fenced_since=FENCED_SINCE)
    return await _result(transaction, {}, code)


async def _result(transaction: _Transaction, codes: dict[_Partition, ErrorCode], other: ErrorCode) -> _Result:
    """Return the result of each partition: its own code, or that of the others."""
    result = _Result(transactional_id=transaction.transactional_id)
    for topic in transaction.topics:
        await pace(ELEMENT)
        answered = _TopicResult(name=topic.name)
        result.topic_results.append(answered)
        for index in topic.partitions:
            await pace(ELEMENT)
            code = codes.get((topic.name, index), other)
            answered.results_by_partition.append(_PartitionResult(partition_index=index, partition_error_code=code))
    return result
