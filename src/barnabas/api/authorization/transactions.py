"""The checks of requests about transactions and producer ids.

- A transactional id comes first, then a group, then topics.
- A producer without a transactional id needs IDEMPOTENT_WRITE on the cluster, or WRITE on any one topic (KIP-679).
- Brokers send AddPartitionsToTxn from version 4 and WriteTxnMarkers: they need CLUSTER_ACTION, and are asked for nothing else.

Source: Kafka's `KafkaApis`, method by method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = [
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "describe_transactions",
    "end_txn",
    "init_producer_id",
    "list_transactions",
    "txn_offset_commit",
    "write_txn_markers",
]

BETWEEN_BROKERS_SINCE = 4
COMMIT_BY_ID_SINCE = 6


async def init_producer_id(
    asker: Asker,
    request: InitProducerIdRequest,
    then: Callable[[InitProducerIdRequest], Awaitable[InitProducerIdResponse]],
) -> InitProducerIdResponse:
    """Ask for the transactional id, or for the right to write anything."""
    if request.transactional_id is not None:
        asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        if request.enable2_pc:
            asker.need(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not (
        asker.may_cluster(AclOperation.IDEMPOTENT_WRITE, is_loud=False)
        or asker.may_some(AclOperation.WRITE, ResourceType.TOPIC)
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await then(request)


async def add_partitions_to_txn(
    asker: Asker,
    request: AddPartitionsToTxnRequest,
    then: Callable[[AddPartitionsToTxnRequest], Awaitable[AddPartitionsToTxnResponse]],
) -> AddPartitionsToTxnResponse:
    """Ask a broker for CLUSTER_ACTION, a client for its transactional id; the handler asks for the client's topics."""
    if asker.version >= BETWEEN_BROKERS_SINCE:
        asker.need_cluster(AclOperation.CLUSTER_ACTION)
    else:
        asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
    return await then(request)


async def add_offsets_to_txn(
    asker: Asker,
    request: AddOffsetsToTxnRequest,
    then: Callable[[AddOffsetsToTxnRequest], Awaitable[AddOffsetsToTxnResponse]],
) -> AddOffsetsToTxnResponse:
    """Ask for the transactional id, then for the group."""
    asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    return await then(request)


async def end_txn(
    asker: Asker, request: EndTxnRequest, then: Callable[[EndTxnRequest], Awaitable[EndTxnResponse]]
) -> EndTxnResponse:
    """Ask for the transactional id."""
    asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    return await then(request)


async def write_txn_markers(
    asker: Asker,
    request: WriteTxnMarkersRequest,
    then: Callable[[WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]],
) -> WriteTxnMarkersResponse:
    """Ask for ALTER on the cluster, as administrators have who end a transaction, else for CLUSTER_ACTION."""
    if not asker.may_cluster(AclOperation.ALTER, is_loud=False):
        asker.need_cluster(AclOperation.CLUSTER_ACTION)
    return await then(request)


async def txn_offset_commit(
    asker: Asker,
    request: TxnOffsetCommitRequest,
    then: Callable[[TxnOffsetCommitRequest], Awaitable[TxnOffsetCommitResponse]],
) -> TxnOffsetCommitResponse:
    """Ask for the transactional id, the group, and each topic."""
    asker.need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    by_id = asker.version >= COMMIT_BY_ID_SINCE

    def name_of(topic: TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic) -> str | None:
        return asker.image().topics.name_of(topic.topic_id) if by_id else topic.name

    allowed, denied = await asker.split(request.topics, AclOperation.READ, ResourceType.TOPIC, name_of)
    if not denied:
        return await then(request)
    request.topics = allowed
    response = await then(request) if allowed else TxnOffsetCommitResponse()
    for topic in denied:
        await pace(ELEMENT)
        refused = [
            TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            for each in topic.partitions
        ]
        response.topics.append(
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=refused
            )
        )
    return response


async def describe_transactions(
    asker: Asker,
    request: DescribeTransactionsRequest,
    then: Callable[[DescribeTransactionsRequest], Awaitable[DescribeTransactionsResponse]],
) -> DescribeTransactionsResponse:
    """Ask for each id, and leave out the topics that the client may not describe."""
    allowed, denied = await asker.split(
        request.transactional_ids, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, str
    )
    request.transactional_ids = allowed
    response = await then(request)
    for state in response.transaction_states:
        state.topics, _ = await asker.split(
            state.topics, AclOperation.DESCRIBE, ResourceType.TOPIC, lambda topic: topic.topic
        )
    for transactional_id in denied:
        await pace(ELEMENT)
        response.transaction_states.append(
            DescribeTransactionsResponse.TransactionState(
                transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            )
        )
    return response


async def list_transactions(
    asker: Asker,
    request: ListTransactionsRequest,
    then: Callable[[ListTransactionsRequest], Awaitable[ListTransactionsResponse]],
) -> ListTransactionsResponse:
    """Leave out each id that the client may not describe."""
    response = await then(request)
    response.transaction_states, _ = await asker.split(
        response.transaction_states,
        AclOperation.DESCRIBE,
        ResourceType.TRANSACTIONAL_ID,
        lambda state: state.transactional_id,
    )
    return response
