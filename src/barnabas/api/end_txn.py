"""EndTxn (API key 26, versions 0-5): commit or abort a transaction.

- The response leaves when the outcome is committed; the markers follow. A repeated request gets the same response.
- A request of version 5 belongs to a client of transaction version 2: the response has the producer id and epoch for its next
  transaction, and a transaction that has not begun may be aborted.

Version 2 returns PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH, 3 is flexible, 4 adds TRANSACTION_ABORTABLE, 5 the epoch bump
(KIP-890).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.producer_errors import producer_error
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import EndTxnRequest, EndTxnResponse
from barnabas.transaction.transaction_shard import EndTxn

FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5
EPOCH_BUMP_VERSION = 2


async def handle(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """End a transaction."""
    wanted = EndTxn(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_BUMP_VERSION if context.version >= EPOCH_BUMP_SINCE else 0,
    )
    try:
        ended = await context.services.transaction_coordinator.end_transaction(wanted)
    except KafkaError as error:
        return EndTxnResponse(error_code=producer_error(error, context.version, fenced_since=FENCED_SINCE))
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.producer_epoch)
