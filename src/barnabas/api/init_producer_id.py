"""InitProducerId (API key 22). Control plane.

Versions served: 0-5.

- Without a transactional id: a new producer id with epoch 0, also when the request names an old one (KIP-360).
- A producer id without an epoch or the reverse: INVALID_REQUEST, as is an empty transactional id.
- Deviation: transactional ids have no coordinator yet. The answer is NOT_COORDINATOR, and FindCoordinator says
  COORDINATOR_NOT_AVAILABLE, as on a broker whose `__transaction_state` is missing.

Version 2 is flexible, 3 adds the present id and epoch (KIP-360), 4 PRODUCER_FENCED, 5 TRANSACTION_ABORTABLE (KIP-890). Version 6
(KIP-939) is unstable and not advertised.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import answered
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> asyncio.Future[InitProducerIdResponse] | InitProducerIdResponse:
    """Give an idempotent producer its id."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.NOT_COORDINATOR)

    def refused(error: KafkaError) -> InitProducerIdResponse:
        return _refused(error.code)

    return answered(
        context.services.loop,
        context.services.producer_ids.generate(),
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id, producer_epoch=0),
        refused,
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
