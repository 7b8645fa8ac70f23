"""InitProducerId (API key 22, versions 0-5): give a producer its id and epoch.

- Without a transactional id: a new producer id with epoch 0, even if the request names an old one (KIP-360).
- With one: its producer id with the epoch bumped, which fences every earlier producer of the transactional id. An open transaction is
  aborted first: CONCURRENT_TRANSACTIONS, and the client retries.
- A producer that names its current id and epoch gets the next epoch, or PRODUCER_FENCED if another producer has replaced it.
- A producer id without an epoch, an epoch without an id, and an empty transactional id are INVALID_REQUEST.
- A timeout that is not positive or above `transaction.max.timeout.ms` is INVALID_TRANSACTION_TIMEOUT.
- Version 6 (KIP-939) is unstable in Kafka; it is served only where `barnabas.api.UNSTABLE` says so. `enable2Pc` removes the
  timeout, and is TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the broker allows it. `keepPreparedTxn` keeps the open transaction for
  the new epoch, and the response has the transaction's id and epoch. Apache Kafka 4.4 returns UNSUPPORTED_VERSION for the latter;
  this follows the KIP.

Version 2 is flexible, 3 adds the current id and epoch (KIP-360), 4 PRODUCER_FENCED, 5 TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.producer_errors import producer_error
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from barnabas.records.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

FENCED_SINCE = 4


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give a producer its id and epoch."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id == "":
        return _refused(ErrorCode.INVALID_REQUEST)
    try:
        if request.transactional_id is not None:
            return await _transactional(context, request, request.transactional_id)
        producer_id = await context.services.producer_ids.generate()
    except KafkaError as error:
        return _refused(producer_error(error, context.version, fenced_since=FENCED_SINCE))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _transactional(
    context: RequestContext, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    # A broker with idempotent producers only does not import the transactions' code.
    from barnabas.transaction.transaction_metadata import NEVER_TIMES_OUT_MS
    from barnabas.transaction.transaction_shard import InitProducerId

    coordinator = context.services.transaction_coordinator
    if request.enable2_pc and not coordinator.config.two_phase_commit_enable:
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    timeout_ms = request.transaction_timeout_ms
    if request.enable2_pc:
        timeout_ms = NEVER_TIMES_OUT_MS
    elif not 0 < timeout_ms <= coordinator.config.transaction_max_timeout_ms:
        return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = (request.producer_id, request.producer_epoch)
    initialized = await coordinator.init_producer_id(
        InitProducerId(transactional_id, timeout_ms, expected, request.keep_prepared_txn)
    )
    return InitProducerIdResponse(
        producer_id=initialized.producer_id,
        producer_epoch=initialized.producer_epoch,
        ongoing_txn_producer_id=initialized.ongoing[0],
        ongoing_txn_producer_epoch=initialized.ongoing[1],
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
