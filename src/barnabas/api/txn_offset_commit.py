"""TxnOffsetCommit (API key 28, versions 0-6): commit a group's offsets in a transaction.

- The offsets are pending until the transaction ends; then they are the group's or are dropped. Meanwhile a consumer that asks for
  stable offsets gets UNSTABLE_OFFSET_COMMIT (KIP-447).
- The transaction must include the group's partition of `__consumer_offsets`. The transaction coordinator verifies that, and from
  version 5 adds the partition (KIP-890).
- A partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION, an unknown topic id UNKNOWN_TOPIC_ID. An error of the group or of the
  transaction applies to all other partitions.

Version 2 adds leader epochs, 3 is flexible and checks member, generation and instance (KIP-447), 4 adds TRANSACTION_ABORTABLE, 5 adds
the partition (KIP-890), 6 topic ids (KIP-1319).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.coordinator.append_error import append_error
from barnabas.group import requests
from barnabas.group.parts import extend_topics, parts
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.records.record_batch import NO_SEQUENCE
from barnabas.transaction.partitions import TransactionSupportedOperation, add_or_verify
from barnabas.turns import ELEMENT, RECORD, pace

LOADING_SINCE = 2
TOPIC_ID_SINCE = 6

_OF_THE_LOG = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_AskedTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
_AskedPartition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


async def handle(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Commit the offsets of partitions that exist."""
    services = context.services
    known, refused = await _split(context, request)
    if not known:
        return await _response(context, [], refused)
    accepted = TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )
    if not request.group_id:
        return await _response(context, await _all_with(known, ErrorCode.INVALID_GROUP_ID), refused)
    answered: list[_Topic] = []
    try:
        if not requests.fits_batch(services.group_coordinator, known):
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE)
        guard = await _verified(context, accepted)
        async for accepted.topics in parts(known):
            answer = await services.group_coordinator.commit_transactional_offsets(accepted, context.version, guard)
            extend_topics(answered, answer.topics)
    except KafkaError as error:
        # Also of the parts that are written: the producer must abort the transaction.
        return await _response(context, await _all_with(known, _translated(context, error)), refused)
    return await _response(context, answered, refused)


async def _split(context: RequestContext, request: TxnOffsetCommitRequest) -> tuple[list[_AskedTopic], list[_Topic]]:
    """Return the partitions that exist, by topic name, and the errors of the others."""
    topics = context.services.image().topics
    known: list[_AskedTopic] = []
    refused: list[_Topic] = []
    for topic in request.topics:
        await pace(ELEMENT)
        name = topic.name
        if context.version >= TOPIC_ID_SINCE:
            found = topics.name_of(topic.topic_id)
            if found is None:
                refused.append(await _answers(topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = found
        exist: list[_AskedPartition] = []
        missing: list[_AskedPartition] = []
        for partition in topic.partitions:
            await pace(RECORD)
            is_known = topics.partition(name, partition.partition_index) is not None
            (exist if is_known else missing).append(partition)
        if missing:
            refused.append(await _answers(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if exist:
            image = topics.by_name[name]
            known.append(_AskedTopic(name=name, topic_id=image.topic_id, partitions=exist))
    return known, refused


async def _verified(context: RequestContext, request: TxnOffsetCommitRequest) -> VerificationGuard | None:
    """Ensure that the transaction includes the group's partition.

    Returns: a guard for the append, None if none is needed.
    Raises: KafkaError.
    """
    services = context.services
    operation = TransactionSupportedOperation.of_txn_offset_commit(context.version)
    index = services.group_coordinator.partition_of(request.group_id)
    partition = services.replica_manager.partition(GROUP_METADATA, index)
    must_verify = partition.topic.config.transaction_partition_verification_enable
    if not operation.supports_epoch_bump and not must_verify:
        return None
    guard = partition.begin_verification(
        request.producer_id,
        NO_SEQUENCE,
        request.producer_epoch,
        supports_epoch_bump=operation.supports_epoch_bump,
    )
    if guard is not None:
        errors = await add_or_verify(
            services.transaction_coordinator,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [(GROUP_METADATA, index)],
            operation,
        )
        for code in errors.values():
            raise KafkaError(code)
    return guard


def _translated(context: RequestContext, error: KafkaError) -> ErrorCode:
    """Return the code for the client: a coordinator's for a log's, and one that the client's version knows."""
    code = error.code
    if code in _OF_THE_LOG:
        code = append_error(error)
    elif code is ErrorCode.NETWORK_EXCEPTION:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


async def _answers(topic: _AskedTopic, partitions: list[_AskedPartition], code: ErrorCode) -> _Topic:
    answers = _Topic(name=topic.name, topic_id=topic.topic_id)
    for partition in partitions:
        await pace(ELEMENT)
        answers.partitions.append(_Partition(partition_index=partition.partition_index, error_code=code))
    return answers


async def _all_with(topics: list[_AskedTopic], code: ErrorCode) -> list[_Topic]:
    return [await _answers(topic, topic.partitions, code) for topic in topics]


async def _response(context: RequestContext, topics: list[_Topic], refused: list[_Topic]) -> TxnOffsetCommitResponse:
    """Merge the answers with the errors found before; a topic with both has one entry."""
    merged: dict[str | bytes, _Topic] = {}
    for topic in [*refused, *topics]:
        await pace(ELEMENT)
        key = topic.topic_id if context.version >= TOPIC_ID_SINCE else topic.name
        if key in merged:
            merged[key].partitions.extend(topic.partitions)
        else:
            merged[key] = topic
    return TxnOffsetCommitResponse(topics=list(merged.values()))
