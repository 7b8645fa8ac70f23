"""AddOffsetsToTxn (25): a transaction is about to commit offsets of a group. Control plane.

Versions: 0-4. Flexible from 3.

Behaviour:

- Adds the group's partition of `__consumer_offsets` to the transaction, as AddPartitionsToTxn would.
- Only clients before transaction version 2 send it; later ones add the partition with TxnOffsetCommit itself.

Version notes: 2 PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH; 3 flexible; 4 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.metadata.topic_names import GROUP_METADATA
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE = 2


async def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the group's partition."""
    services = context.services
    partition = (GROUP_METADATA, services.group_coordinator.partition_of(request.group_id))
    try:
        await services.transaction_coordinator.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, frozenset({partition}), 0
        )
    except KafkaError as error:
        is_old = error.code is ErrorCode.PRODUCER_FENCED and context.version < FENCED_SINCE
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code)
    return AddOffsetsToTxnResponse()
