"""AddOffsetsToTxn (API key 25, versions 0-4): add a group's offsets partition to a transaction.

- Adds the group's partition of `__consumer_offsets` to the transaction, as AddPartitionsToTxn would.
- Only clients before transaction version 2 send it; for later ones TxnOffsetCommit adds the partition.

Version 2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 adds TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.producer_errors import producer_error
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.topic_names import GROUP_METADATA

FENCED_SINCE = 2


async def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the group's partition to the transaction."""
    services = context.services
    partition = (GROUP_METADATA, services.group_coordinator.partition_of(request.group_id))
    try:
        await services.transaction_coordinator.add_partitions(
            request.transactional_id, request.producer_id, request.producer_epoch, frozenset({partition}), 0
        )
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=producer_error(error, context.version, fenced_since=FENCED_SINCE))
    return AddOffsetsToTxnResponse()
