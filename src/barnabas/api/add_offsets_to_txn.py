"""AddOffsetsToTxn (25): a transaction is about to commit offsets of a group. Control plane.

Versions: 0-4. Flexible from 3.

Behaviour:

- Adds the group's partition of `__consumer_offsets` to the transaction, as AddPartitionsToTxn would.
- Only clients before transaction version 2 send it; later ones add the partition with TxnOffsetCommit itself.

Version notes: 2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; 3 flexible; 4 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import answered
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE = 2


def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> asyncio.Future[AddOffsetsToTxnResponse]:
    """Add the group's partition."""
    services = context.services

    def failed(error: KafkaError) -> AddOffsetsToTxnResponse:
        code = error.code
        if code is ErrorCode.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=code)

    added = services.transaction_coordinator.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        frozenset({(GROUP_METADATA, services.group_coordinator.partition_of(request.group_id))}),
        0,
    )
    return answered(services.loop, added, lambda _: AddOffsetsToTxnResponse(), failed)
