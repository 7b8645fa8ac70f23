"""DescribeTransactions (API key 65, version 0): the state of transactional ids.

- For each id its state, producer id and epoch, timeout, and for an open transaction its start and its partitions. Tools find hanging
  transactions with it.
- An unknown id is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.

Version 0 is flexible (KIP-664).
"""

from __future__ import annotations

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.steps import gather
from barnabas.transaction.records import by_topic
from barnabas.transaction.transaction_metadata import TransactionMetadata

_State = DescribeTransactionsResponse.TransactionState


async def handle(context: RequestContext, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe each id, in the order of the request."""
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
