"""DescribeTransactions (65): the state of transactional ids, for finding hanging transactions (KIP-664). Control plane.

Versions: 0. Flexible.

Behaviour:

- For each id its state, producer id and epoch, timeout, and while a transaction is open its beginning and its partitions.
- TRANSACTIONAL_ID_NOT_FOUND for one that nobody has used; INVALID_REQUEST for an empty one.

Version notes: none.
"""

from __future__ import annotations

import asyncio

from barnabas.api.context import RequestContext
from barnabas.coordinator.future_steps import answered, gathered
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.transaction.records import by_topic
from barnabas.transaction.transaction_metadata import TransactionMetadata

_State = DescribeTransactionsResponse.TransactionState


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> asyncio.Future[DescribeTransactionsResponse]:
    """Describe each id, in the order asked."""
    services = context.services

    def one(transactional_id: str) -> asyncio.Future[_State]:
        def failed(error: KafkaError) -> _State:
            return _State(transactional_id=transactional_id, error_code=error.code)

        return answered(services.loop, services.transaction_coordinator.describe(transactional_id), _described, failed)

    return gathered(
        services.loop,
        [one(transactional_id) for transactional_id in request.transactional_ids],
        lambda states: DescribeTransactionsResponse(transaction_states=states),
    )


def _described(found: TransactionMetadata) -> _State:
    return _State(
        transactional_id=found.transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(found.partitions).items()
        ],
    )
