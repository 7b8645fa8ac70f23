"""DescribeTransactions (65): the state of transactional ids, for finding hanging transactions (KIP-664). Control plane.

Versions: 0. Flexible.

Behaviour:

- For each id its state, producer id and epoch, timeout, and while a transaction is open its beginning and its partitions.
- TRANSACTIONAL_ID_NOT_FOUND for one that nobody has used; INVALID_REQUEST for an empty one.

Version notes: none.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.steps import gather
from barnabas.transaction.records import by_topic
from barnabas.transaction.transaction_metadata import TransactionMetadata

_State = DescribeTransactionsResponse.TransactionState


async def handle(context: RequestContext, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe each id, in the order asked."""
    coordinator = context.services.transaction_coordinator

    async def one(transactional_id: str) -> _State:
        try:
            return _described(await coordinator.describe(transactional_id))
        except KafkaError as error:
            return _State(transactional_id=transactional_id, error_code=error.code)

    states = await gather(map(one, request.transactional_ids), context.services.loop)
    return DescribeTransactionsResponse(transaction_states=states)


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
