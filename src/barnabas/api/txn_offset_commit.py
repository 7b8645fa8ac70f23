"""TxnOffsetCommit (28): commit a group's offsets inside a transaction. Control plane.

Versions: 0-6. Flexible from 3.

Behaviour:

- The offsets are pending until the transaction ends, and then are the group's, or are gone. A consumer that asks for stable offsets
  meanwhile gets UNSTABLE_OFFSET_COMMIT (KIP-447).
- The group's partition of `__consumer_offsets` must be in the transaction: verified with the transaction coordinator, from version 5 on
  added (KIP-890).
- Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION, an unknown topic id UNKNOWN_TOPIC_ID, each by itself; an error of the
  group or of the transaction is given to all others.

Version notes: 2 leader epochs; 3 member, generation and instance are checked (KIP-447), flexible; 4 TRANSACTION_ABORTABLE; 5 adds the
partition (KIP-890); 6 topic ids (KIP-1319).
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import answered, when_done
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from barnabas.transaction.partitions import TransactionSupportedOperation, add_or_verify

LOADING_SINCE = 2
TOPIC_ID_SINCE = 6
NO_SEQUENCE = -1

_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> asyncio.Future[TxnOffsetCommitResponse] | TxnOffsetCommitResponse:
    """Commit what exists."""
    services = context.services
    known, refused = _split(context, request)
    accepted = TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=known,
    )
    if not known:
        return _response(context, [], refused)
    if not request.group_id:
        return _response(context, _all_with(known, ErrorCode.INVALID_GROUP_ID), refused)
    response: asyncio.Future[Any] = services.loop.create_future()

    def committed(done: asyncio.Future[Any]) -> None:
        if not response.done():
            response.set_result(done.result())

    def verified(guard: VerificationGuard | None, error: KafkaError | None) -> None:
        if error is not None:
            code = _translated(context, error.code)
            if not response.done():
                response.set_result(_response(context, _all_with(known, code), refused))
            return
        future = services.group_coordinator.commit_transactional_offsets(accepted, context.version, guard)
        when_done(
            answered(
                services.loop,
                future,
                lambda answer: _response(context, answer.topics, refused),
                lambda error: _response(context, _all_with(known, _translated(context, error.code)), refused),
            ),
            committed,
        )

    _verify(context, request, verified)
    return response


def _split(context: RequestContext, request: TxnOffsetCommitRequest) -> tuple[list[Any], list[_Topic]]:
    """The topics and partitions that exist, under their names, and the answers for the others."""
    topics = context.services.image().topics
    known: list[Any] = []
    refused: list[_Topic] = []
    for topic in request.topics:
        name = topic.name
        if context.version >= TOPIC_ID_SINCE:
            found = topics.name_of(topic.topic_id)
            if found is None:
                refused.append(_answers(topic, topic.partitions, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = found
        exist = [p for p in topic.partitions if topics.partition(name, p.partition_index) is not None]
        missing = [p for p in topic.partitions if topics.partition(name, p.partition_index) is None]
        if missing:
            refused.append(_answers(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if exist:
            image = topics.by_name[name]
            known.append(
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, topic_id=image.topic_id, partitions=exist)
            )
    return known, refused


def _verify(context: RequestContext, request: TxnOffsetCommitRequest, then: Any) -> None:
    """Have the transaction include the group's partition; `then` is called with a guard, or with the error."""
    services = context.services
    operation = TransactionSupportedOperation.of_txn_offset_commit(context.version)
    index = services.group_coordinator.partition_of(request.group_id)
    try:
        partition = services.replica_manager.partition(GROUP_METADATA, index)
        must_verify = partition.topic.config.transaction_partition_verification_enable
        if not operation.supports_epoch_bump and not must_verify:
            then(None, None)
            return
        guard = partition.begin_verification(
            request.producer_id,
            NO_SEQUENCE,
            request.producer_epoch,
            supports_epoch_bump=operation.supports_epoch_bump,
        )
    except KafkaError as error:
        then(None, error)
        return
    if guard is None:
        then(None, None)
        return

    def answered_by_coordinator(done: asyncio.Future[Any]) -> None:
        code = done.result().get((GROUP_METADATA, index), ErrorCode.NONE)
        then(guard, None if code is ErrorCode.NONE else KafkaError(code))

    asked = add_or_verify(
        services.transaction_coordinator,
        services.loop,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [(GROUP_METADATA, index)],
        operation,
    )
    when_done(asked, answered_by_coordinator)


def _translated(context: RequestContext, code: ErrorCode) -> ErrorCode:
    """The code for the client: a log's error becomes a coordinator's, and old clients do not know all of those."""
    if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT):
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
        code = ErrorCode.NOT_COORDINATOR
    elif code is ErrorCode.NETWORK_EXCEPTION:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _answers(topic: Any, partitions: list[Any], code: ErrorCode) -> _Topic:
    return _Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[_Partition(partition_index=p.partition_index, error_code=code) for p in partitions],
    )


def _all_with(topics: list[Any], code: ErrorCode) -> list[_Topic]:
    return [_answers(topic, topic.partitions, code) for topic in topics]


def _response(context: RequestContext, topics: list[_Topic], refused: list[_Topic]) -> TxnOffsetCommitResponse:
    """Merge what was answered with what was refused before; a topic with both has one entry."""
    merged: dict[Any, _Topic] = {}
    for topic in [*refused, *topics]:
        key = topic.topic_id if context.version >= TOPIC_ID_SINCE else topic.name
        if key in merged:
            merged[key].partitions.extend(topic.partitions)
        else:
            merged[key] = topic
    return TxnOffsetCommitResponse(topics=list(merged.values()))
