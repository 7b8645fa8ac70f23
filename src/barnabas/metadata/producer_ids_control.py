"""Producer ids in blocks.

A broker asks for a block of a thousand ids and assigns them itself. One ProducerIdsRecord per block records where the
next block begins, so a crash never leads to one id twice.

Sources: KIP-730; Kafka's `ProducerIdControlManager`.
"""

from __future__ import annotations

from barnabas.metadata.cluster_control import registered
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
LAST_PRODUCER_ID = 2**63 - 1


def allocate_producer_ids(
    view: ControllerView, request: messages.AllocateProducerIdsRequest
) -> ControllerResult[messages.AllocateProducerIdsResponse]:
    """Answer one AllocateProducerIds.

    Raises:
        KafkaError: STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR when the ids are used up.
    """
    registered(view, request.broker_id, request.broker_epoch)
    first = max(view.image.producer_ids.next_producer_id, 0)
    if first > LAST_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producerIds as the last block was allocated")
    record = messages.ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = messages.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return ControllerResult(response, [record])
